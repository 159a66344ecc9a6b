package bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** Seconds on the wall and of processors, the compiler's and the collector's included. */
record Clock(double seconds, double cpu) {
    /** What is timed. */
    interface Work {
        void run() throws Exception;
    }

    private static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    static Clock of(Work work) throws Exception {
        long cpu = SYSTEM.getProcessCpuTime();
        long wall = System.nanoTime();
        work.run();
        wall = System.nanoTime() - wall;
        return new Clock(wall / 1e9, (SYSTEM.getProcessCpuTime() - cpu) / 1e9);
    }
}
