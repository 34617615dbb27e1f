#include "bindings/duckdb/pools.h"

#include <map>

#include "bindings/pools/open_files.h"
#include "flugs/try.h"

namespace flugs::duckdb {

namespace {

/// The pools that DuckDB uses in this process.
struct OpenPools {
  OpenFiles<Pool> files;
  /// What is lent, by its name. With the lock of `files`.
  std::map<std::string, std::weak_ptr<Pool>> lent;
};

/// Never destroyed: DuckDB may be in use after the destructors of this library.
OpenPools& open_pools() {
  static OpenPools& instance = *new OpenPools;
  return instance;
}

std::shared_ptr<Pool> add_pool(OpenPools& known, const std::optional<PoolFile>& file,
                               std::string path, std::shared_ptr<Database> database, bool is_lent) {
  const auto close = [file](Pool* pool) {
    pool->take_back();
    delete pool;
    if (file) open_pools().files.remove(*file);
  };
  std::shared_ptr<Pool> pool(new Pool(std::move(path), std::move(database), is_lent), close);
  if (file) known.files.add(*file, pool);
  return pool;
}

/// A pool that this process must not write to is opened for reading.
Result<Database> open_as_allowed(const std::string& path, OpenMode mode, std::uint64_t max_bytes) {
  OpenOptions options{.path = path, .mode = mode, .max_bytes = max_bytes};
  Result<Database> database = Database::open(options);
  if (database.ok() || database.code() != StatusCode::kReadOnly || mode != OpenMode::kOpen)
    return database;
  options.mode = OpenMode::kReadOnly;
  return Database::open(options);
}

/// What a program has lent by this name.
Result<std::shared_ptr<Pool>> find_lent(const std::string& name) {
  OpenPools& known = open_pools();
  std::shared_ptr<Pool> pool;  // destroyed without the lock, which the end of a pool takes
  const std::unique_lock lock = known.files.lock();
  if (const auto found = known.lent.find(name); found != known.lent.end())
    pool = found->second.lock();
  if (pool != nullptr && !pool->is_taken_back()) return pool;
  return Status(StatusCode::kCancelled, name + ": the program has closed it");
}

}  // namespace

Guest::Guest(std::shared_ptr<Pool> pool, Transaction transaction)
    : pool_(std::move(pool)), transaction_(std::move(transaction)) {}

Guest::Guest(std::shared_ptr<Pool> pool, std::shared_ptr<HeldTransaction> held)
    : pool_(std::move(pool)), held_(std::move(held)) {}

void Guest::add(const std::shared_ptr<GuestStream>& stream) {
  streams_.push_back(stream);
  if (held_ != nullptr) held_->add(stream);
}

Guest::~Guest() {
  const std::shared_lock open(pool_->gate_);
  {
    const std::lock_guard lock(pool_->guests_mutex_);
    pool_->guests_.erase(this);
  }
  end();
}

// The pool is open, and no thread is in `use`.
void Guest::end() noexcept {
  for (const std::weak_ptr<GuestStream>& stream : streams_)
    if (const std::shared_ptr<GuestStream> kept = stream.lock()) end(*kept);
  streams_.clear();
  transaction_ = Transaction();
}

void Guest::end(GuestStream& stream) noexcept {
  if (held_ != nullptr)
    held_->end(stream);
  else
    stream.end();
}

void Guest::finish(GuestStream& stream) noexcept {
  // Also while a thread waits to take the pool back: the caller may destroy the stream now.
  const std::shared_lock open(pool_->gate_);
  if (pool_->database_ == nullptr) return;  // taking it back has ended the stream
  const std::lock_guard lock(mutex_);
  end(stream);
}

Status Guest::use(FunctionRef<Status(Database&, Transaction&)> work) {
  return pool_->use([&](Database& database) {
    const auto call = [&](Transaction& transaction) {
      const std::lock_guard lock(mutex_);
      return work(database, transaction);
    };
    return held_ != nullptr ? held_->use(call) : call(transaction_);
  });
}

Status Guest::read(FunctionRef<Status()> work) {
  return pool_->use([&](Database& /*database*/) { return work(); });
}

Status Pool::taken_back() const {
  return Status(StatusCode::kCancelled, path_ + ": the program has closed the pool");
}

Status Pool::use(FunctionRef<Status(Database&)> work) {
  if (is_taken_back()) return taken_back();
  const std::shared_lock open(gate_);
  if (database_ == nullptr) return taken_back();
  Status done = work(*database_);
  // What was asked to stop says so in other words.
  if (done.code() == StatusCode::kCancelled && is_taken_back()) return taken_back();
  return done;
}

Result<std::shared_ptr<Guest>> Pool::begin(AccessMode mode) {
  std::shared_ptr<Guest> guest;
  FLUGS_TRY(use([&](Database& database) -> Status {
    if (held_ != nullptr) {
      guest.reset(new Guest(shared_from_this(), held_));
    } else {
      FLUGS_ASSIGN(Transaction transaction, database.begin(mode));
      guest.reset(new Guest(shared_from_this(), std::move(transaction)));
    }
    const std::lock_guard lock(guests_mutex_);
    guests_.insert(guest.get());
    return {};
  }));
  return guest;
}

void Pool::take_back() noexcept {
  stop_.request_stop();
  const std::unique_lock alone(gate_);
  if (database_ == nullptr) return;
  {
    const std::lock_guard lock(guests_mutex_);
    for (Guest* guest : guests_) guest->end();
  }
  database_.reset();
}

Result<std::shared_ptr<Pool>> open_pool(const std::string& path, OpenMode mode,
                                        std::uint64_t max_bytes) {
  if (path.starts_with(kLentPrefix)) return find_lent(path);
  std::string real = real_path(path);
  OpenPools& known = open_pools();
  std::shared_ptr<Pool> pool;  // goes behind the lock, which its closing takes
  std::unique_lock lock = known.files.lock();
  pool = known.files.find(lock, real);
  // A lent pool that was taken back stays in the list as long as a query knows it.
  if (pool != nullptr && !pool->is_taken_back()) return pool;
  if (mode == OpenMode::kOpen && !file_at(real))
    return Status(StatusCode::kNotFound, path + ": no such file; COPY ... TO '" + path +
                                             "/TABLE' (FORMAT flugs) makes a pool");
  FLUGS_ASSIGN(Database database, open_as_allowed(real, mode, max_bytes));
  const std::optional<PoolFile> file = file_at(real);
  if (!file) return Status(StatusCode::kIoError, path + ": the file has gone");
  return add_pool(known, file, std::move(real), std::make_shared<Database>(std::move(database)),
                  false);
}

std::shared_ptr<Pool> lend_pool(LentPool lent) {
  OpenPools& known = open_pools();
  const std::unique_lock lock = known.files.lock();
  std::optional<PoolFile> file;
  if (!lent.path.empty()) file = file_at(lent.path);
  std::shared_ptr<Pool> pool = add_pool(known, file, lent.path.empty() ? lent.name : lent.path,
                                        std::move(lent.database), true);
  pool->hold(std::move(lent.transaction));
  std::erase_if(known.lent, [](const auto& entry) { return entry.second.expired(); });
  known.lent[std::move(lent.name)] = pool;
  return pool;
}

}  // namespace flugs::duckdb
