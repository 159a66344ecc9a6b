package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;

/** The threads that a job may use. */
final class Workers implements AutoCloseable {
    final int count;
    private final ExecutorService pool;

    Workers(int count) {
        this.count = count;
        this.pool = Executors.newFixedThreadPool(count);
    }

    /** Runs the tasks of 0 to {@code tasks}, as many at once as there are threads. */
    <T> List<T> each(int tasks, IntFunction<Callable<T>> task) throws Exception {
        List<Future<T>> running = new ArrayList<>();
        for (int i = 0; i < tasks; i++) {
            running.add(pool.submit(task.apply(i)));
        }
        List<T> results = new ArrayList<>();
        for (Future<T> future : running) {
            try {
                results.add(future.get());
            } catch (ExecutionException failed) {
                throw failed.getCause() instanceof Exception cause ? cause : failed;
            }
        }
        return results;
    }

    @Override
    public void close() {
        pool.shutdownNow();
    }
}
