// SPDX-License-Identifier: Apache-2.0

// Measures a million records in SQLite, in LMDB and in a mapped table like the disk tier's catalogue.
//
// index_databases (sqlite-normal|sqlite-off|lmdb-nosync|table) FOLDER COUNT prints one line of JSON. A record is a key
// of 12 bytes, a size and a last use. Both databases have a second index by last use, and an eviction removes the
// oldest record of that index.
#define _GNU_SOURCE
#include <fcntl.h>
#include <lmdb.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                   \
    do {                                                   \
        if (!(condition)) {                                \
            fprintf(stderr, "line %d failed\n", __LINE__); \
            exit(1);                                       \
        }                                                  \
    } while (0)

struct key {
    uint64_t high;
    uint32_t low;
};
struct record {
    uint64_t size, used;
};

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}
static struct key key_of(uint64_t n) {
    return (struct key){mix(n) | 1, (uint32_t)mix(~n)};
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

// One interface, three indexes.
struct index {
    void (*open)(const char *path);
    void (*begin)(void);
    void (*end)(void);
    int (*find)(struct key);
    void (*touch)(struct key, uint64_t used);
    void (*store)(struct key, uint64_t used);
    void (*evict)(void);
    void (*close)(void);
};

// SQLite

static sqlite3 *db;
static sqlite3_stmt *find_statement, *touch_statement, *store_statement, *oldest_statement, *delete_statement;
static const char *synchronous = "NORMAL";

static void run_sql(const char *text) {
    CHECK(sqlite3_exec(db, text, 0, 0, 0) == SQLITE_OK);
}
static void prepare(const char *text, sqlite3_stmt **statement) {
    CHECK(sqlite3_prepare_v2(db, text, -1, statement, 0) == SQLITE_OK);
}
static void sqlite_open(const char *path) {
    char text[128];
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    run_sql("PRAGMA journal_mode=WAL");
    snprintf(text, sizeof text, "PRAGMA synchronous=%s", synchronous);
    run_sql(text);
    run_sql("PRAGMA mmap_size=1073741824");
    run_sql("CREATE TABLE IF NOT EXISTS entry(key BLOB PRIMARY KEY, size INTEGER, used INTEGER) WITHOUT ROWID");
    run_sql("CREATE INDEX IF NOT EXISTS entry_used ON entry(used)");
    prepare("SELECT size, used FROM entry WHERE key=?", &find_statement);
    prepare("UPDATE entry SET used=? WHERE key=?", &touch_statement);
    prepare("INSERT OR REPLACE INTO entry VALUES(?,50000,?)", &store_statement);
    prepare("SELECT key FROM entry ORDER BY used LIMIT 1", &oldest_statement);
    prepare("DELETE FROM entry WHERE key=?", &delete_statement);
}
static void sqlite_begin(void) {
    run_sql("BEGIN");
}
static void sqlite_end(void) {
    run_sql("COMMIT");
}
static int sqlite_find(struct key key) {
    sqlite3_bind_blob(find_statement, 1, &key, 12, SQLITE_STATIC);
    int result = sqlite3_step(find_statement);
    sqlite3_reset(find_statement);
    return result == SQLITE_ROW;
}
static void sqlite_touch(struct key key, uint64_t used) {
    sqlite3_bind_int64(touch_statement, 1, (int64_t)used);
    sqlite3_bind_blob(touch_statement, 2, &key, 12, SQLITE_STATIC);
    CHECK(sqlite3_step(touch_statement) == SQLITE_DONE);
    sqlite3_reset(touch_statement);
}
static void sqlite_store(struct key key, uint64_t used) {
    sqlite3_bind_blob(store_statement, 1, &key, 12, SQLITE_STATIC);
    sqlite3_bind_int64(store_statement, 2, (int64_t)used);
    CHECK(sqlite3_step(store_statement) == SQLITE_DONE);
    sqlite3_reset(store_statement);
}
static void sqlite_evict(void) {
    struct key key = {0, 0};
    CHECK(sqlite3_step(oldest_statement) == SQLITE_ROW);
    memcpy(&key, sqlite3_column_blob(oldest_statement, 0), 12);
    sqlite3_reset(oldest_statement);
    sqlite3_bind_blob(delete_statement, 1, &key, 12, SQLITE_STATIC);
    CHECK(sqlite3_step(delete_statement) == SQLITE_DONE);
    sqlite3_reset(delete_statement);
}
static void sqlite_close_all(void) {
    sqlite3_finalize(find_statement), sqlite3_finalize(touch_statement), sqlite3_finalize(store_statement);
    sqlite3_finalize(oldest_statement), sqlite3_finalize(delete_statement);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

// LMDB

static MDB_env *environment;
static MDB_dbi entries, uses;
static MDB_txn *batch;
struct use {
    uint64_t used;
    struct key key;
};

static int compare_uses(const MDB_val *a, const MDB_val *b) {
    const struct use *left = a->mv_data, *right = b->mv_data;
    if (left->used != right->used) return left->used < right->used ? -1 : 1;
    return memcmp(&left->key, &right->key, 12);
}
static void lmdb_open(const char *path) {
    MDB_txn *txn;
    CHECK(mdb_env_create(&environment) == 0);
    CHECK(mdb_env_set_mapsize(environment, 1ull << 30) == 0 && mdb_env_set_maxdbs(environment, 2) == 0);
    CHECK(mdb_env_open(environment, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_WRITEMAP, 0600) == 0);
    CHECK(mdb_txn_begin(environment, 0, 0, &txn) == 0);
    CHECK(mdb_dbi_open(txn, "entries", MDB_CREATE, &entries) == 0);
    CHECK(mdb_dbi_open(txn, "uses", MDB_CREATE, &uses) == 0);
    mdb_set_compare(txn, uses, compare_uses);
    CHECK(mdb_txn_commit(txn) == 0);
}
static MDB_txn *lmdb_txn(int flags) {
    MDB_txn *txn = batch;
    if (!txn) CHECK(mdb_txn_begin(environment, 0, flags, &txn) == 0);
    return txn;
}
static void lmdb_done(MDB_txn *txn) {
    if (txn != batch) CHECK(mdb_txn_commit(txn) == 0);
}
static void lmdb_begin(void) {
    batch = lmdb_txn(0);
}
static void lmdb_end(void) {
    CHECK(mdb_txn_commit(batch) == 0);
    batch = 0;
}
static int lmdb_find(struct key key) {
    MDB_txn *txn = lmdb_txn(MDB_RDONLY);
    MDB_val k = {12, &key}, v;
    int result = mdb_get(txn, entries, &k, &v);
    if (txn != batch) mdb_txn_abort(txn);
    return result == 0;
}
static void lmdb_store(struct key key, uint64_t used) {
    MDB_txn *txn = lmdb_txn(0);
    MDB_val k = {12, &key}, v;
    if (mdb_get(txn, entries, &k, &v) == 0) {
        struct record old;
        memcpy(&old, v.mv_data, sizeof old);
        struct use use = {old.used, key};
        MDB_val u = {sizeof use, &use};
        mdb_del(txn, uses, &u, 0);
    }
    struct record record = {50000, used};
    struct use use = {used, key};
    MDB_val u = {sizeof use, &use}, empty = {0, 0};
    v = (MDB_val){sizeof record, &record};
    CHECK(mdb_put(txn, entries, &k, &v, 0) == 0 && mdb_put(txn, uses, &u, &empty, 0) == 0);
    lmdb_done(txn);
}
static void lmdb_evict(void) {
    MDB_txn *txn = lmdb_txn(0);
    MDB_cursor *cursor;
    MDB_val u, v;
    CHECK(mdb_cursor_open(txn, uses, &cursor) == 0 && mdb_cursor_get(cursor, &u, &v, MDB_FIRST) == 0);
    struct use use;
    memcpy(&use, u.mv_data, sizeof use);
    CHECK(mdb_cursor_del(cursor, 0) == 0);
    mdb_cursor_close(cursor);
    MDB_val k = {12, &use.key};
    CHECK(mdb_del(txn, entries, &k, 0) == 0);
    lmdb_done(txn);
}
static void lmdb_close_all(void) {
    mdb_env_close(environment);
}

// A mapped table with open addressing. One pass over the table selects its oldest entries, 1/64 of them at a time.

struct slot {
    uint64_t high, low, size, used;
};
static struct slot *slots;
static uint64_t slot_count, planned_count;
static struct key *victims;
static uint64_t victim_count, next_victim;

static uint64_t home(struct key key) {
    return (uint64_t)(((unsigned __int128)key.high * slot_count) >> 64);
}
static void table_open(const char *path) {
    slot_count = planned_count + planned_count / 2;
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && posix_fallocate(file, 0, slot_count * sizeof(struct slot)) == 0);
    slots = mmap(0, slot_count * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(slots != MAP_FAILED);
    close(file);
}
static void table_nothing(void) {
}
static struct slot *table_slot(struct key key) {
    uint64_t i = home(key);
    while (slots[i].high && (slots[i].high != key.high || slots[i].low != key.low)) i = i + 1 == slot_count ? 0 : i + 1;
    return &slots[i];
}
static int table_find(struct key key) {
    return table_slot(key)->high != 0;
}
static void table_store(struct key key, uint64_t used) {
    *table_slot(key) = (struct slot){key.high, key.low, 50000, used};
}
static void table_touch(struct key key, uint64_t used) {
    table_slot(key)->used = used;
}
static void table_remove(struct key key) {
    uint64_t gap = table_slot(key) - slots, i = gap;
    for (;;) {
        i = i + 1 == slot_count ? 0 : i + 1;
        if (!slots[i].high) break;
        uint64_t h = home((struct key){slots[i].high, 0});
        uint64_t distance = i >= h ? i - h : i + slot_count - h, shift = i >= gap ? i - gap : i + slot_count - gap;
        if (distance < shift) continue;
        slots[gap] = slots[i];
        gap = i;
    }
    slots[gap].high = 0;
}
static int compare_words(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}
static void pick_victims(void) {
    static uint64_t sample[8192];
    uint64_t sampled = 0, limit, room = slot_count / 8;
    for (uint64_t i = 0; i < slot_count && sampled < 8192; i++)
        if (slots[i].high) sample[sampled++] = slots[i].used;
    qsort(sample, sampled, 8, compare_words);
    limit = sample[sampled / 64];
    struct slot *found = malloc(room * sizeof *found);
    victim_count = next_victim = 0;
    for (uint64_t i = 0; i < slot_count && victim_count < room; i++)
        if (slots[i].high && slots[i].used <= limit) found[victim_count++] = slots[i];
    victims = realloc(victims, victim_count * sizeof *victims);
    for (uint64_t i = 0; i < victim_count; i++) victims[i] = (struct key){found[i].high, (uint32_t)found[i].low};
    free(found);
}
static void table_evict(void) {
    if (next_victim == victim_count) pick_victims();
    table_remove(victims[next_victim++]);
}

static const struct index sqlite_index = {sqlite_open,  sqlite_begin, sqlite_end,   sqlite_find,
                                          sqlite_touch, sqlite_store, sqlite_evict, sqlite_close_all};
static const struct index lmdb_index = {lmdb_open,  lmdb_begin, lmdb_end,   lmdb_find,
                                        lmdb_store, lmdb_store, lmdb_evict, lmdb_close_all};
static const struct index table_index = {table_open,  table_nothing, table_nothing, table_find,
                                         table_touch, table_store,   table_evict,   table_nothing};

static double resident_mib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return resident * 4096.0 / 1048576;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    int is_sqlite = !strncmp(argv[1], "sqlite", 6);
    if (!strcmp(argv[1], "sqlite-off")) synchronous = "OFF";
    const struct index *index = is_sqlite ? &sqlite_index : !strncmp(argv[1], "lmdb", 4) ? &lmdb_index : &table_index;
    uint64_t count = strtoull(argv[3], 0, 10), operations = 20000;
    char path[4096];
    planned_count = count;
    mkdir(argv[2], 0700);
    snprintf(path, sizeof path, "%s/index", argv[2]);
    unlink(path);
    index->open(path);
    index->begin();
    for (uint64_t i = 0; i < count; i++) index->store(key_of(i), i);
    index->end();
    index->close();
    sync();

    double idle = resident_mib(), start = now();
    index->open(path);
    CHECK(index->find(key_of(4711)));
    double open_ms = (now() - start) * 1e3;
    start = now();
    for (uint64_t i = 0; i < operations; i++) CHECK(index->find(key_of(mix(i) % count)));
    double find_ns = (now() - start) / operations * 1e9;
    start = now();
    for (uint64_t i = 0; i < operations; i++) CHECK(!index->find(key_of(count * 3 + i)));
    double miss_ns = (now() - start) / operations * 1e9;
    start = now();
    for (uint64_t i = 0; i < operations; i++) index->touch(key_of(mix(i) % count), count + i);
    double touch_ns = (now() - start) / operations * 1e9;
    start = now();
    for (uint64_t i = 0; i < operations; i++) index->store(key_of(count + i), count + operations + i);
    double store_ns = (now() - start) / operations * 1e9;
    start = now();
    for (uint64_t i = 0; i < operations; i++) index->evict();
    double evict_ns = (now() - start) / operations * 1e9, resident = resident_mib() - idle;
    struct stat status;
    CHECK(stat(path, &status) == 0);
    printf(
        "{\"index\":\"%s\",\"open_ms\":%.3f,\"find_ns\":%.0f,\"miss_ns\":%.0f,\"touch_ns\":%.0f,\"store_ns\":%.0f,"
        "\"evict_ns\":%.0f,\"file_mib\":%.1f,\"resident_mib\":%.1f}\n",
        argv[1], open_ms, find_ns, miss_ns, touch_ns, store_ns, evict_ns, status.st_blocks * 512 / 1048576.0, resident);
    return 0;
}
