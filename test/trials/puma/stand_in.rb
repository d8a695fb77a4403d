# frozen_string_literal: true

# Loaded first by each file of Puma's own tests: `Puma::Server` listens as before, and what serves is Heddle, in a
# thread of the test's process. What the tests compare byte by byte is read in Puma's notation where both mean the same
# (`Notation`).

require "minitest"
require "openssl"
require "heddle"
require "heddle/server"
require "puma"
require "puma/server"

module PumaTests
  # Before each line of results.
  MARK = "ended: "
  MODE = ENV.fetch("HEDDLE_TRIAL_MODE", "fiber").to_sym
  # Puma's settings under Heddle's names.
  OPTIONS = { persistent_timeout: :idle_timeout, first_data_timeout: :head_timeout,
              http_content_length_limit: :body_limit, force_shutdown_after: :stop_timeout }.freeze

  # Heddle's log, in the two places where Puma's tests look.
  class Log < Heddle::Server::Log
    def initialize(writer) = super(output: Quiet.new(writer.stdout), errors: writer.stderr, access: false, level: :warn)

    # Puma's tests read what was written so far.
    Quiet = Struct.new(:io) do
      def write(text) = io.write(text)
      def flush = nil
    end
  end

  # The tests compare whole responses. They read them without the date and with the version of the request, and the
  # field `connection` where Puma has it: the page names these differences.
  module Notation
    HEAD = %r{HTTP/1\.1 (?!1)[^\r]*\r\n(?:[^\r]+\r\n)*\r\n}n
    DATE = /(?<=\r\n)date: [^\r]*\r\n/
    LENGTH_FIRST = /((?:content-length|transfer-encoding): [^\r]*\r\n)(connection: [^\r]*\r\n)(?=\r\n)/

    %i[syswrite << write].each do |name|
      define_method(name) do |text, *more|
        @http10 = true if text.include?(" HTTP/1.0\r\n")
        super(text, *more)
      end
    end

    %i[read_nonblock sysread read readline readpartial].each do |name|
      define_method(name) do |*arguments, **options|
        found = super(*arguments, **options)
        next found unless found.is_a?(String) && arguments.size < 2

        in_notation(found.b).force_encoding(found.encoding)
      end
    end
    TCPSocket.prepend(self)
    UNIXSocket.prepend(self)
    OpenSSL::SSL::SSLSocket.prepend(self) if defined?(OpenSSL::SSL::SSLSocket)

    private

    def in_notation(text)
      text.gsub(HEAD) do |head|
        head = head.gsub(DATE, "").sub(LENGTH_FIRST, '\2\1')
        @http10 ? head.sub("HTTP/1.1", "HTTP/1.0").sub("connection: close\r\n", "") : head
      end
    end
  end

  # What the tests of a stop look at.
  Pool = Struct.new(:spawned, :waiting)

  # Where a test puts what delays a request.
  class Reactor
    def add(_client) = nil
  end

  # In place of Puma's thread pool and reactor.
  module Serving
    # rubocop:disable Style/OptionalBooleanParameter -- as Puma has them
    def run(background = true, **)
      events.fire(:state, :booting)
      @status = :run
      @thread_pool = Pool.new(min_threads, min_threads)
      @reactor = Reactor.new
      settings, listeners = heddle_settings, heddle_listeners
      settings.open_pubsub(->(*, **) {})
      @heddle = Heddle::Server.new(settings, log: Log.new(log_writer), listeners:)
      ready = Queue.new
      @thread = Thread.new { serve(ready) }
      ready.pop
      events.fire(:state, :running)
      background ? @thread : @thread.join
    end

    def stop(sync = false) = heddle_stop(sync)
    def halt(sync = false) = heddle_stop(sync, now: true)
    def begin_restart(sync = false) = heddle_stop(sync)
    # rubocop:enable Style/OptionalBooleanParameter
    def shutting_down? = @heddle.nil? || @heddle.stopping?
    def running = @heddle ? min_threads : 0
    def requests_count = @heddle ? (@heddle.statistics || {})[:requests].to_i : 0

    private

    def serve(ready)
      @heddle.run(->(env) { app.call(env.merge!("REQUEST_PATH" => env["PATH_INFO"])) }) { ready << true }
    ensure
      ready << true
      binder.close
      events.fire(:state, :done)
    end

    def heddle_stop(sync, now: false)
      return unless @heddle

      events.fire(:state, now ? :halt : :stop) unless @heddle.stopping?
      @thread_pool.instance_variable_set(:@shutdown, true)
      limit = options[:force_shutdown_after]
      @heddle.stop(now: now || limit.is_a?(Numeric) && limit.zero?)
      @thread.join(10) || raise("the server does not stop") if sync
    end

    def heddle_settings
      values = OPTIONS.to_h { |puma, heddle| [heddle, options[puma]] }.compact
      values.delete(:stop_timeout) unless values[:stop_timeout].is_a?(Numeric) && values[:stop_timeout] >= 0
      early = options[:early_hints] || @early_hints ? :always : :off
      Heddle::Server::Configuration.new(bind: [], mode: MODE, environment: options[:environment].to_s, workers: 1,
                                        protect: [], early_hints: early, **values)
    end

    def heddle_listeners
      proxies = Heddle::Net::Networks.new(%w[loopback]) if options[:remote_address] == :proxy_protocol
      all = binder.ios.map do |io|
        io, context = io.to_io, heddle_context(io)
        address = io.local_address
        url = address.ip? ? "http://#{address.inspect_sockaddr}" : address.unix_path
        Heddle::Server::Listener.new(io, url, (address.ip_port if address.ip?), tls: context, proxies:)
      end
      Heddle::Server::Listeners.new(all)
    end

    def heddle_context(io)
      context = io.instance_variable_get(:@ctx) or return
      verify = { nil => :none, 0 => :none, 1 => :optional, 3 => :required }.fetch(context.verify_mode)
      settings = Heddle::Server::TLSSettings.new(files: [[context.cert, context.key]], verify:, ca: context.ca)
      settings.acceptor("127.0.0.1", nil)
    end
  end

  Puma::Server.prepend(Serving)

  # Writes how each test ended to standard output, a line each.
  class Results < Minitest::AbstractReporter
    def record(result) = $stdout.syswrite("\n#{MARK}#{result.klass}##{result.name} #{result.result_code}\n")
  end
end

module Minitest
  def self.plugin_heddle_init(_options) = reporter << PumaTests::Results.new
  extensions << "heddle"
end
