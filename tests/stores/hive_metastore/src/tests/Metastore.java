package tests;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** A metastore on a port, with the tables that its locks need. */
public final class Metastore {
    public static void main(String[] args) throws Throwable {
        Configuration conf = MetastoreConf.newMetastoreConf();
        TxnDbUtil.prepDb(conf);
        HiveMetaStore.startMetaStore(Integer.parseInt(args[0]), null, conf);
    }
}
