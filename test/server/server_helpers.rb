# frozen_string_literal: true

require "heddle/server"
require "support/constants"
require "net/http"
require "rack/lint"
require "stringio"
require "timeout"

# Starts servers in threads of the test's own process, on ports that the kernel chooses.
module ServerHelpers
  # Seconds after which a test has failed, on a machine that is busy with other tests.
  PATIENCE = 60

  attr_reader :output, :errors, :port, :server

  # Serves the application while the block runs; stops in order afterwards.
  def serving(app, lint: true, **options)
    start(app, lint:, **options)
    yield
  ensure
    stop
  end

  def start(app, lint: true, scoreboard_slot: nil, handoff_sockets: nil, ready: -> {}, **options)
    @output = StringIO.new
    @errors = StringIO.new
    configuration = Constants.configuration(bind: ["127.0.0.1:0"], selector: selector_under_test, slow_request: 0,
                                            **mode_under_test, **options)
    @log = Heddle::Server::Log.new(output: @output, errors: @errors, access: configuration.access_log,
                                   format: configuration.log_format)
    @server = Heddle::Server.new(configuration, log: @log, scoreboard_slot:, handoff_sockets:)
    @port = @server.open.first[/\d+\z/].to_i
    started = Thread::Queue.new
    app = Rack::Lint.new(app) if lint
    @thread = Thread.new { @server.run(app) { [ready.call, started << true] } }
    @thread.report_on_exception = false
    started.pop(timeout: PATIENCE) or @thread.join(PATIENCE)
  end

  # @return [Boolean] whether every request was answered
  def stop
    return unless @server

    @server.stop
    wait_for_end
  end

  def wait_for_end
    raise "the server does not end" unless @thread.join(PATIENCE)

    @server = nil
    @thread.value
  end

  # Without those about stalls, which are reported on a busy machine or with HEDDLE_TEST_PROTECT.
  def log_lines = output.string.b.lines.grep_v(/ stall of |"event":"stall"/)

  # What a client sends in pieces does not wait for the server's kernel, which acknowledges after 40 ms.
  def connect = TCPSocket.new("127.0.0.1", port).tap { |client| client.setsockopt(:TCP, :NODELAY, true) }

  # Sends bytes on a new connection and reads until the server closes it.
  def exchange(*pieces)
    socket = connect
    pieces.each { |piece| socket.write(piece) }
    read_all(socket)
  ensure
    socket&.close
  end

  def read_all(socket) = Timeout.timeout(PATIENCE) { socket.read }

  # Reads one answer that has a content-length.
  def read_answer(socket)
    Timeout.timeout(PATIENCE) do
      head = socket.gets("\r\n\r\n") or return
      head + socket.read(head[/^content-length: (\d+)/i, 1].to_i)
    end
  end

  def get(path, headers = {}) = Net::HTTP.start("127.0.0.1", port) { |http| http.get(path, headers) }

  # @return [Hash] the server's statistics, once they are as the block wants them
  def until_statistics
    deadline = now + PATIENCE
    loop do
      found = server.statistics
      return found if yield(found)

      flunk "never: #{found}" if now > deadline
      sleep 0.001
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # An application whose requests tell that they have come, and wait until they are let go.
  # @return [Array(Proc, Thread::Queue, Thread::Queue)]
  def waiting_application(body = "")
    arrived = Thread::Queue.new
    release = Thread::Queue.new
    app = lambda do |_env|
      arrived << true
      release.pop
      [200, {}, [body]]
    end
    [app, arrived, release]
  end

  # An application that answers with text.
  def text(body = "hello") = ->(_env) { [200, { "content-type" => "text/plain" }, [body]] }
end
