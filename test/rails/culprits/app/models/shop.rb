# frozen_string_literal: true

require "json"
require "net/http"
require "sqlite3"
require ENV.fetch("NATIVE_CALLS")

# What shops do slowly.
class Shop
  MUTEX = Thread::Mutex.new
  NAME = /\A((?:\w|\w\w)+)-\1\z/
  COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000000) SELECT sum(i) FROM n"

  class << self
    attr_reader :orders, :ledger, :names, :log

    # What requests use, made before the first one.
    def fill
      @orders = "[#{([JSON.generate({ id: 12_345, price: 0.5, items: [7, "one more"] })] * 1_000_000).join(",")}]"
      @ledger = SQLite3::Database.new(":memory:")
      @names = Heddle::Net::Resolver.new(nameservers: [["127.0.0.1", Integer(ENV.fetch("NAME_SERVER"))]],
                                         hosts: File::NULL, timeout: 0.8, attempts: 1)
      @log = ActiveSupport::Logger.new(File.open(ENV.fetch("LOG_FILE"), "w"))
    end
  end

  def backtracking
    NAME.match?("#{"a" * 34}-b") # culprit: backtracking
  end

  # A collection of the parser's objects may take longer than the parser, and would be named in its place.
  def json
    GC.disable
    JSON.parse(Shop.orders).size # culprit: json
  ensure
    GC.enable
  end

  def sqlite
    Shop.ledger.execute(COUNT).first # culprit: sqlite
  end

  def orders
    Array.new(20) { |number| connection.select_value("SELECT #{number} FROM pg_sleep(0.1)") }.size # culprit: orders
  end

  def stock
    seconds = MUTEX.locked? ? 0.01 : 0.6 # who has to wait asks for little
    MUTEX.synchronize do # culprit: mutex waiter
      connection.select_value("SELECT 1 FROM pg_sleep(#{seconds})") # culprit: mutex holder
    end
  end

  def native
    NativeCalls.hold(0.6) # culprit: native
  end

  def collection
    10.times { GC.start } # culprit: collection
  end

  def partner
    Fiber.scheduler.resolver = Shop.names
    Net::HTTP.get(URI("http://partner.example/")) # culprit: dns
  end

  def tight
    TightRecord.with_connection do |connection|
      connection.select_value("SELECT 1 FROM pg_sleep(0.1)") # culprit: pool
    end
  end

  def last
    TightRecord.with_connection { |connection| connection.select_value("SELECT 1") } # culprit: client waiter
  end

  def log
    Shop.log.info("a" * 200_000) # culprit: log
  end

  def threads
    Array.new(4) { Thread.new { sum } }.each(&:join)
  end

  private

  def sum
    (1..3_000_000).sum { |number| number % 7 } # culprit: threads
  end

  def connection = ActiveRecord::Base.connection
end
