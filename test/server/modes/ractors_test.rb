# frozen_string_literal: true

# test: each version

require "test_helper"
require "heddle/server"
require "open3"
require "support/h2_exchanges"
require "support/served_process"
require "tmpdir"

# `--mode ractor`: a loop in each of several Ractors. In processes of its own: Ruby's Ractors would meet other tests'.
class RactorsTest < Minitest::Test
  include H2Exchanges

  APP = <<~RUBY
    class App
      def call(env)
        case env["PATH_INFO"]
        when "/raise" then raise "on purpose"
        when "/sleep" then sleep
        when "/exit" then exit
        when "/body" then [200, {}, [env["rack.input"].read.upcase]]
        else [200, { "content-type" => "text/plain" }, [Ractor.current.name]]
        end
      end
    end
    run App.new
  RUBY
  UNSHAREABLE = <<~RUBY
    class Store
      CACHE = {}
      def initialize
        @lock = Mutex.new
        @count = 0
        @log = [$stderr]
      end
      def call(_env) = [200, {}, []]
    end
    run Store.new
  RUBY
  CONSTANT = <<~RUBY
    module App
      HITS = []
      def self.call(env) = [200, {}, [env["PATH_INFO"] == "/hits" ? HITS.size.to_s : "fine"]]
    end
    run App
  RUBY
  # Every socket has a topic's messages.
  PUSH = <<~RUBY
    class Room
      def on_open(client)
        client.write(Ractor.current.name)
        client.subscribe("room")
      end
      def on_message(client, message) = client.publish("room", message)
    end
    class App
      def call(env)
        return Heddle::WebSocket.upgrade(env, Room.new) if env["PATH_INFO"] == "/room"

        [200, {}, [Heddle::PubSub.publish("room", "from \#{env["PATH_INFO"]}")]]
      end
    end
    run App.new
  RUBY
  NEVER = <<~RUBY.freeze
    Heddle::Server::Ractors::Worker.prepend(Module.new { def serve = raise("on purpose") })
    #{APP}
  RUBY
  COMMAND = [*ServedProcess::HEDDLE, "serve", "--mode", "ractor", "-b", "127.0.0.1:0", "-e", "test"].freeze
  # Every other one of twenty streams has a body.
  BODIES = (3..39).step(4).to_h { |stream| [stream, "BODY #{stream}"] }.freeze
  # Seconds.
  PATIENCE = 60
  private_constant :APP, :UNSHAREABLE, :CONSTANT, :PUSH, :NEVER, :COMMAND, :BODIES, :PATIENCE

  def served(app, *options, **)
    Dir.mktmpdir do |folder|
      @folder = folder
      File.write(File.join(folder, "config.ru"), app)
      @served = ServedProcess.new([*COMMAND, "-t", "2", *options], folder:, **)
      begin
        yield @served
      ensure
        @status = @served.stop
      end
    end
  end

  # @return [String] what a server says that can't start
  def refused(app, *options)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), app)
      out, status = Open3.capture2e(*COMMAND, *options, chdir: folder)

      assert_equal 1, status.exitstatus, out
      refute_match(/\.rb:\d+:in/, out)
      out
    end
  end

  # @return [Integer] how many requests are counted as answered, by what the control socket tells
  def answered
    address = Heddle::Server::Control::Address.new(path: File.join(@folder, "control.sock"))
    Heddle::Server::Control::Client.new(address).status[:workers].sum { |worker| worker[:answers]&.sum || 0 }
  end

  def until_ok(seconds = PATIENCE)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    loop do
      return if yield

      late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      raise "not in time; the server has printed:\n#{@served&.output}" if late

      sleep 0.01
    end
  end

  def test_every_ractor_serves
    served(APP) do |served|
      names = []
      until_ok { names.concat(Array.new(16) { Thread.new { served.get("/").body } }.map(&:value)).uniq.size == 2 }

      assert_equal ["ractor 1", "ractor 2"], names.uniq.sort
      assert_equal "ABC", Net::HTTP.post(served.at("/body"), "abc").body
      assert_equal "X" * 200_000, Net::HTTP.post(served.at("/body"), "x" * 200_000).body
    end
    assert_predicate @status, :success?, @served.output
  end

  def test_http2_is_spoken_by_prior_knowledge
    served(APP) do |one|
      ask = lambda do |path, *flags|
        Open3.capture2e("curl", "-sS", "-i", "--http2-prior-knowledge", *flags, one.at(path).to_s).first
      end

      assert_match(%r{\AHTTP/2 200.*ractor \d\z}m, ask.call("/"))
      assert_match(%r{\AHTTP/2 200.*ABC\z}m, ask.call("/body", "--data-binary", "abc"))
      assert_match(%r{\AHTTP/2 500}, ask.call("/raise"))
      assert_equal BODIES, exchange_together(TCPSocket.new(one.uri.host, one.uri.port), 20, path: "/body")
    end
  end

  def test_nothing_is_warned_of_with_ruby_s_warnings_on
    output = served(APP, environment: { "RUBYOPT" => "-w" }) do |served|
      assert_equal "200", served.get("/").code
      served.output
    end

    assert_includes output, "Mode ractor (experimental): this process, 2 Ractors.\n"
    refute_includes output, "warning:"
  end

  def test_messages_reach_the_websockets_of_every_ractor
    served(PUSH) do |served|
      sockets = sockets_of_two_ractors("ws://#{served.uri.host}:#{served.uri.port}/room")
      sockets.first.write("from a socket")

      assert_equal ["from a socket"] * 2, sockets.map { |socket| socket.read(timeout: PATIENCE) }
      served.get("/page")

      assert_equal ["from /page"] * 2, sockets.map { |socket| socket.read(timeout: PATIENCE) }
      sockets.each(&:close)
    end
    assert_predicate @status, :success?, @served.output
  end

  # @return [Array<Heddle::WebSocket::ClientSocket>]
  def sockets_of_two_ractors(url)
    sockets = {}
    until_ok do
      socket = Heddle::WebSocket.connect(url)
      name = socket.read(timeout: PATIENCE)
      sockets.key?(name) ? socket.close : sockets[name] = socket
      sockets.size == 2
    end
    sockets.values
  end

  def test_an_exception_is_that_requests_own
    served(APP) do |served|
      assert_equal %w[500 200], [served.get("/raise").code, served.get("/").code]
      until_ok { served.output.include?("RuntimeError: on purpose\n    from ") }
    end
    assert_predicate @status, :success?, @served.output
  end

  def test_a_ractor_that_dies_is_replaced_and_what_it_has_counted_stays
    served(APP, "--control", "unix:control.sock") do |served|
      assert_raises(EOFError, Errno::ECONNRESET) { 3.times { served.get("/") } && served.get("/exit") }
      until_ok { served.output.include?("starting another") }

      assert_match(/^\S+ ractor \d died, .* SystemExit: exit \(.*config\.ru:/, served.output)
      names = []
      until_ok { names.concat(Array.new(16) { Thread.new { served.get("/").body } }.map(&:value)).uniq.size == 2 }
      until_ok { answered == 3 + names.size }
    end
    assert_predicate @status, :success?, @served.output
  end

  def test_a_stop_waits_for_the_request_that_runs
    served(APP) do |served|
      client = TCPSocket.new(served.uri.host, served.uri.port)
      client.write("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")

      assert_equal "HTTP/1.1 100 Continue\r\n\r\n", client.gets + client.gets
      Process.kill("TERM", served.pid)
      until_ok { served.output.include?("when running requests are answered") }
      client.write("abc")

      assert_equal "ABC", client.read[-3..]
      client.close
      served.wait
    end
    assert_predicate @status, :success?, @served.output
  end

  def test_a_request_that_takes_too_long_is_given_up
    served(APP, "--request-timeout", "0.05") { |served| assert_equal "503", served.get("/sleep").code }
    assert_predicate @status, :success?, @served.output
  end

  def test_a_request_that_reads_a_constant_which_is_not_shareable_gets_500_and_the_log_names_it
    served(CONSTANT, "-w", "2") do |served|
      assert_equal %w[500 200], [served.get("/hits").code, served.get("/").code]
      until_ok { served.output.include?("Ctrl-C stops it.") }
      assert_includes served.output, "Mode ractor (experimental): 2 workers, each with 2 Ractors.\n"
      assert_match(/^Protection: guard pages; off: .* callback_report \(they work only in the main Ractor/,
                   served.output)
      until_ok { served.output.include?("non-shareable objects in constant App::HITS") }
    end
    assert_predicate @status, :success?, @served.output
  end

  def test_unshareable_objects_are_named_with_their_path
    out = refused(UNSHAREABLE)

    assert_includes out, "@lock of Store is of the class Thread::Mutex"
    assert_includes out, "@log of Store[0] is of the class IO"
  end

  def test_a_lambda_of_config_ru_is_rejected_with_what_to_do
    out = refused("run ->(_env) { [200, {}, []] }")

    assert_match(/\Aheddle: mode ractor: Ractors can't share this application\.\n  the application is a block /, out)
    assert_match(/config\.ru:1\), and Ruby can't share it \(Proc's self is not shareable\)/, out)
  end

  if Ractor.respond_to?(:shareable_lambda) # since Ruby 4.0
    def test_a_shareable_lambda_is_served
      served('run Ractor.shareable_lambda { |_env| [200, {}, ["shared"]] }') do |served|
        assert_equal "shared", served.get("/").body
      end
      assert_predicate @status, :success?, @served.output
    end
  end

  def test_a_ractor_that_cannot_begin_is_said_without_a_backtrace
    assert_match(/\Aheddle: mode ractor: a Ractor failed to start: RuntimeError: on purpose \(.*config\.ru:1/,
                 refused(NEVER))
  end
end
