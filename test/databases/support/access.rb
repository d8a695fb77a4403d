# frozen_string_literal: true

# Loaded by programs that tests start: one connection at most to a database, by the library and the driver that the
# arguments name. ARGV: pool, active_record or sequel; pg, trilogy or mysql2; PostgreSQL's URL or MariaDB's socket; how
# many connections. HEDDLE_RECORD_OPTIONS: more of Active Record's URL.

require "heddle"

LIBRARY, DRIVER, SERVER, LIMIT = ARGV
SLEEP = DRIVER == "pg" ? "pg_sleep" : "SLEEP"

# Connections by Heddle::Pool.
module PoolAccess
  def self.connect
    require DRIVER
    @pool = Heddle::Pool.new(max: Integer(LIMIT)) { open }
  end

  def self.open
    case DRIVER
    when "pg" then PG.connect(SERVER)
    when "trilogy" then Trilogy.new(socket: SERVER, username: "root")
    when "mysql2" then Mysql2::Client.new(socket: SERVER, username: "root", as: :array)
    end
  end

  def self.value(sql)
    @pool.with { |connection| DRIVER == "pg" ? connection.exec(sql).getvalue(0, 0) : connection.query(sql).first.first }
  end

  def self.raw(&) = @pool.with(&)

  def self.transaction
    @pool.with do |connection|
      connection.query("BEGIN")
      yield ->(sql) { connection.query(sql).first }
    end
  end
end

# Connections by Active Record.
module ActiveRecordAccess
  def self.connect
    require "active_record"
    ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
    options = { adapter: DRIVER, socket: SERVER, username: "root", pool: LIMIT }
    options = "#{SERVER}&pool=#{LIMIT}#{ENV.fetch("HEDDLE_RECORD_OPTIONS", "")}" if DRIVER == "pg"
    ActiveRecord::Base.establish_connection(options)
  end

  def self.value(sql) = ActiveRecord::Base.with_connection { |connection| connection.select_value(sql) }

  def self.raw = ActiveRecord::Base.with_connection { |connection| yield connection.raw_connection }

  def self.transaction
    ActiveRecord::Base.transaction do
      yield ->(sql) { ActiveRecord::Base.with_connection { |connection| connection.select_value(sql) } }
    end
  end
end

# Connections by Sequel.
module SequelAccess
  def self.connect
    require "sequel"
    Sequel.extension(:fiber_concurrency)
    server = { adapter: DRIVER, socket: SERVER, user: "root" }
    server = { adapter: "postgres", conn_str: SERVER } if DRIVER == "pg"
    @database = Sequel.connect(server.merge(max_connections: Integer(LIMIT), pool_timeout: 30))
  end

  def self.value(sql) = @database.fetch(sql).first.values.first

  def self.raw(&) = @database.synchronize(&)

  def self.transaction = @database.transaction { yield method(:value) }
end

ACCESS = { "pool" => PoolAccess, "active_record" => ActiveRecordAccess, "sequel" => SequelAccess }.fetch(LIBRARY)
ACCESS.connect

# A connection of its own, to see what the server does.
module Observer
  @connection = PoolAccess.open if require(DRIVER) || true

  # MariaDB makes a table on disk for each answer. 10.11.19 was seen to crash when it dropped one, after thousands.
  PAUSE = DRIVER == "pg" ? 0 : 0.02
  private_constant :PAUSE

  # @return [Integer] how many queries with this mark the server runs
  def self.running(mark)
    sleep PAUSE
    sql = if DRIVER == "pg"
            "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE '%#{mark}%' AND state = 'active' " \
              "AND pid <> pg_backend_pid()"
          else
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%#{mark}%' AND ID <> CONNECTION_ID()"
          end
    Integer(ask(sql))
  end

  # Runs a statement that has no answer.
  def self.order(sql) = @connection.query(sql)

  # @return the first value of the first row, if there is one
  def self.ask(sql) = DRIVER == "pg" ? @connection.exec(sql).getvalue(0, 0) : @connection.query(sql)&.first&.first
end

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
