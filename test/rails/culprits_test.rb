# frozen_string_literal: true

# test: nightly

require "test_helper"
require "heddle/server"
require "json"
require "net/support/name_server"
require "offload/support/native_calls"
require "support/bundle"
require "support/private_postgresql"
require "support/served_process"
require "tmpdir"

# Whatever makes a request of a Rails application slow under load, the recorder's file names the reason and the line.
# The application is in test/rails/culprits, where comments mark the lines.
class RailsCulpritsTest < Minitest::Test
  APPLICATION = File.expand_path("culprits", __dir__)
  GEMFILE = File.expand_path("bundles/rails_8_1/Gemfile", __dir__)
  # Seconds after which a request is slow, and in which it is kept from what it waits for.
  LIMIT = 0.2
  HELD = 1
  # Other clients, and their pause.
  LOAD = 2
  PAUSE = 0.1
  # What computes may spend most of its time for the objects that it makes.
  COMPUTES = /\A(Ruby code|garbage collection) /
  COMPUTES_BESIDE = /\A(Ruby code|garbage collection) (\(.+\) )?in another thread ran for/
  HOLDS_LOCK = /\Aa native call that held Ruby's lock /
  HOLDS_LOCK_OR_COLLECTS = /#{HOLDS_LOCK}|\Agarbage collection took /
  # The path of the slow request, the reason, how many come at once, and whose line it is if another culprit has the
  # same one: the lock is kept while another server is asked.
  CULPRITS = {
    view: ["/reports/1", COMPUTES],
    process: ["/thumbnail", /\Ait waited .* for a child process/],
    file_lock: ["/export", /\Ait waited .* for a file/],
    cache: ["/cart", HOLDS_LOCK_OR_COLLECTS],
    http: ["/rate", /\Ait waited .* for another server over HTTP/],
    monitor: ["/setting", /a lock at WAITER.* held by GET .*: it waited .* for another server over HTTP/, 4, :http],
    thread: ["/warm", COMPUTES_BESIDE],
    subscriber: ["/audited", COMPUTES],
    backtracking: ["/shop/backtracking", /match\?\) ran for/],
    json: ["/shop/json", HOLDS_LOCK_OR_COLLECTS],
    sqlite: ["/shop/sqlite", /#{HOLDS_LOCK}\(SQLite3::Statement#step\) /],
    orders: ["/shop/orders", /\Ait waited \d+ ms \([2-9]\d times\) for the database/], # now and then twice a query
    mutex: ["/shop/stock", /a lock at WAITER.* held by GET .*: it waited .* for the database/, 2],
    native: ["/shop/native", /#{HOLDS_LOCK}\(NativeCalls\.hold\) /],
    collection: ["/shop/collection", /\Agarbage collection took/],
    dns: ["/shop/partner", /\Ait waited .* for a name server/],
    pool: ["/shop/tight", /it waited .* for a connection of a pool/, 8],
    log: ["/shop/log", /\Ait waited .* for a socket or pipe/],
    client: ["/shop/last", /a connection of a pool at WAITER.* held by GET .*: it waited .* for the client/],
    threads: ["/shop/threads", COMPUTES_BESIDE]
  }.freeze

  Control = Heddle::Server::Control

  # The application, and what it needs beside it.
  class Served < ServedProcess
    attr_reader :traces, :export, :log

    def self.shared = @shared ||= new.tap { |served| Minitest.after_run { served.stop } }

    def initialize
      @folder = Dir.mktmpdir
      @traces, @export, log = %w[traces export log].map { |name| File.join(@folder, name) }
      Dir.mkdir(@traces)
      File.mkfifo(log)
      @log = File.open(log, "r+")
      @names = Heddle::TestHelpers::NameServer.new
      @names.hold
      @rates = TCPServer.new("127.0.0.1", 0)
      @rating = Thread.new { loop { Thread.new(@rates.accept) { |client| rate(client) } } }
      command = [*HEDDLE, "serve", "-b", "127.0.0.1:0", "--slow-request", LIMIT.to_s]
      super(command, environment:, folder: APPLICATION, patience: 300)
    end

    # @return [Array<Hash>] the requests of this path that have no response yet
    def running(path)
      control = Control::Client.new(Control::Address.new(path: File.join(@folder, "control")))
      control.status[:workers].flat_map { |worker| worker[:requests] }.select { |one| one[:target] == path }
    end

    # @return [Array<Hash>] what the files say that were written because of this request
    def found(request)
      all = Dir["#{@traces}/*.json"].map { |path| JSON.parse(File.read(path), symbolize_names: true)[:otherData] }
      all.select { |about| about[:reason] == "slow request" && about[:request] == request }
    end

    def stop
      super
      @rating.kill
      [@rates, @names, @log].each(&:close)
      FileUtils.rm_rf(@folder)
    end

    private

    def environment
      beside = { "TMPDIR" => @traces, "EXPORT_FILE" => @export, "LOG_FILE" => @log.path,
                 "DATABASE_URL" => PrivatePostgresql.shared.url, "NAME_SERVER" => @names.port.to_s,
                 "RATE_URL" => "http://127.0.0.1:#{@rates.addr[1]}/", "NATIVE_CALLS" => NativeCallsLibrary.path }
      Bundle.environment(GEMFILE).merge(beside, "HEDDLE_WORKERS" => "0", "HEDDLE_ACCESS_LOG" => "off",
                                                "HEDDLE_CONTROL" => "unix:#{@folder}/control")
    end

    def rate(client)
      client.readpartial(1_000)
      sleep HELD
      client.write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n7")
      client.close
    end
  end

  def self.installed? = defined?(@installed) ? @installed : (@installed = Bundle.installed?(GEMFILE))

  def setup
    skip "only fibers have stacks" unless ENV.fetch("HEDDLE_MODE", "fiber") == "fiber"
    skip "needs the gems of test/rails/bundles/rails_8_1: bin/setup" unless self.class.installed?
    need_program("postgres") unless PrivatePostgresql.programs
    require "pg"
    @served = Served.shared
    FileUtils.rm_f(Dir["#{@served.traces}/*"])
    @threads = []
  end

  def teardown
    raise "the server has ended, #{@served.stop.inspect}:\n#{@served.output}" unless @served.nil? || @served.alive?
  end

  CULPRITS.each do |name, (path, reason, count, line)|
    define_method("test_#{name}_is_named_with_its_line_and_the_reason") do
      under_load do
        send("hold_#{name}") if respond_to?("hold_#{name}", true)
        (count || 1).times { @threads << Thread.new { @served.get(path) } }
        @threads.each(&:join)
      end
      reason = Regexp.new(reason.source.sub("WAITER") { Regexp.escape(place_of("#{name} waiter")) })
      place = place_of(line || "#{name} holder") || place_of(name)

      await_file("GET #{path}") { |about| reason.match?(about[:cause]) && about[:place]&.start_with?("#{place} ") }
    end
  end

  private

  def hold_file_lock
    file = File.open(@served.export, "a")
    file.flock(File::LOCK_EX)
    later("/export") { file.close }
  end

  def hold_log = later("/shop/log") { @served.log.gets }

  # Reads the head, and for a time nothing more.
  def hold_client
    client = Socket.new(:INET, :STREAM)
    client.setsockopt(:SOCKET, :RCVBUF, 4_096)
    client.connect(Addrinfo.tcp("127.0.0.1", @served.uri.port))
    client.write("GET /shop/download HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    client.readpartial(10)
    later("/shop/last") { client.read && client.close }
  end

  # When the server has not answered a request of this path for so long.
  def later(path)
    @threads << Thread.new do
      sleep PAUSE until @served.running(path).any? { |request| request[:age] > HELD }
      yield
    end
  end

  def under_load
    ended = false
    clients = Array.new(LOAD) do
      Thread.new do
        Net::HTTP.start(@served.uri.host, @served.uri.port) do |http|
          http.get("/quick") && sleep(PAUSE) until ended
        end
      end
    end
    yield
  ensure
    ended = true
    clients.each(&:join)
  end

  # It is written beside the loop.
  def await_file(request, &expected)
    limit = now + 30
    sleep 0.01 until (found = @served.found(request)).any?(&expected) || now > limit
    puts found if ENV["SHOW"]

    message = [*found, *@served.output.lines.last(10)].join("\n")

    assert found.any?(&expected), message
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # @return [String, nil] file and line of the comment
  def place_of(words)
    Dir.glob("**/*.{rb,erb}", base: APPLICATION).each do |path|
      line = File.foreach("#{APPLICATION}/#{path}").find_index { |one| one.match?(/culprit: #{words}( %>)?$/) }
      return "#{path}:#{line + 1}" if line
    end
    nil
  end
end
