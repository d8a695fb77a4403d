# frozen_string_literal: true

# What requests of applications spend their time on, a path a kind. URLs of databases come from the test.

require "net/http"
require "open3"
require "tempfile"
require "zlib"
require "socket"

LOCK = Thread::Mutex.new
POOL = Heddle::Pool.new(max: 2) { Object.new }
TEXT = ("a" * 30_000).freeze
FILE = Tempfile.new.tap { |file| file.write("a" * 1_000_000) && file.flush }
STORED = Random.new(1).bytes(300_000)

def burn(seconds)
  limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
  nil until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) > limit
end

def wait_for_change
  changed = Thread::ConditionVariable.new
  LOCK.synchronize { changed.wait(LOCK, 0.005) }
end

kinds = {
  "hello" => ->(_) {},
  "sleep" => ->(_) { sleep 0.01 },
  "mutex" => ->(_) { LOCK.synchronize { sleep 0.002 } },
  "queue" => ->(_) { Thread::Queue.new.pop(timeout: 0.005) },
  "condition" => ->(_) { wait_for_change },
  "checkout" => ->(_) { POOL.with { sleep 0.005 } },
  "system" => ->(_) { system("true") },
  "open3" => ->(_) { Open3.capture2("cat", stdin_data: "a") },
  "file" => ->(_) { File.read(FILE.path) },
  "http" => ->(env) { Net::HTTP.get("127.0.0.1", "/hello", env["HTTP_X_PLAIN"].to_i) },
  "dns" => ->(_) { Addrinfo.getaddrinfo("localhost", 80) },
  "gc" => ->(_) { GC.start },
  "compute" => ->(_) { burn 0.03 },
  "regexp" => ->(_) { TEXT.gsub(/a(?=a)/, "b") },
  "zlib" => ->(_) { Zlib.deflate(STORED, 9) },
  "tasks" => ->(_) { Heddle.map(1..3) { sleep 0.005 } if Fiber.current_scheduler },
  "error" => ->(_) { raise "as it is" }
}

if ENV["ACCOUNT_SQLITE"]
  require "sqlite3"
  sqlite = SQLite3::Database.new(":memory:")
  sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT sum(i) FROM n"
  kinds["sqlite"] = ->(_) { LOCK.synchronize { sqlite.execute(sql) } }
end
if (url = ENV.fetch("ACCOUNT_POSTGRESQL", nil))
  require "active_record"
  ActiveRecord::Base.establish_connection(url: url, pool: 4, adapter: "postgresql")
  kinds["postgresql"] = lambda do |_|
    ActiveRecord::Base.with_connection { |connection| connection.select_value("SELECT pg_sleep(0.005)") }
  end
end
if (url = ENV.fetch("ACCOUNT_REDIS", nil))
  require "redis-client"
  redis = Heddle::Pool.new(max: 4) { RedisClient.config(url: url).new_client }
  kinds["redis"] = ->(_) { redis.with { |client| client.call("BLPOP", "none", "0.01") } }
end
if Gem::Specification.find_all_by_name("bcrypt").any?
  require "bcrypt"
  kinds["bcrypt"] = ->(_) { BCrypt::Password.create("secret", cost: 6) }
end

pieces = Enumerator.new { |body| 30.times { body << ("x" * 100_000) } }
run(lambda { |env|
  kind = env["PATH_INFO"].delete("/")
  next [200, {}, [kinds.keys.join(" ")]] if kind == "kinds"
  next [200, {}, pieces] if kind == "stream"

  kinds.fetch(kind).call(env)
  [200, { "content-type" => "text/plain" }, [kind]]
})
