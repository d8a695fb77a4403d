# frozen_string_literal: true

require "test_helper"
require "support/prometheus_text"
require "heddle/cli"
require "json"
require "minitest/mock"
require "tmpdir"
require_relative "server_helpers"

# The sockets over which an operator inspects and controls the server.
class ControlTest < Minitest::Test
  include ServerHelpers

  Client = Heddle::Server::Control::Client

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "heddle.sock")
  end

  def teardown
    @control&.stop
    stop
    FileUtils.remove_entry(@folder)
  end

  # A server with its control sockets.
  def controlled(app = text, control: ["unix:#{@path}"], **options)
    start(app, lint: false, control:, **options)
    source = Heddle::Server::Control::SingleProcess.new(server, @log)
    @control = Heddle::Server::Control.open(server.configuration, source, @log)
    @control&.start
  end

  def client = Client.new(Heddle::Server::Control::Address.parse("unix:#{@path}"))

  def ask(path, method: "GET")
    socket = UNIXSocket.new(@path)
    socket.write("#{method} #{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    head, body = read_all(socket).split("\r\n\r\n", 2)
    [head[/ (\d{3})/, 1].to_i, body, head]
  ensure
    socket&.close
  end

  # => the response
  def heard_as_another_user
    reader, writer = IO.pipe
    Process.wait(fork do
      Process::UID.change_privilege(65_534)
      socket = UNIXSocket.new(@path)
      writer.write(begin
        socket.write("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        socket.read
      rescue Errno::EPIPE, Errno::ECONNRESET
        ""
      end)
      exit!(0)
    end)
    writer.close
    reader.read
  ensure
    reader.close
  end

  def test_metrics_health_and_status_are_answered
    controlled
    get("/")
    status, body, head = ask("/metrics")

    assert_equal 200, status
    assert_match(%r{content-type: text/plain; version=0\.0\.4}, head)
    assert_equal 1, PrometheusText.parse(body)["heddle_requests_total"][{ "worker" => "0", "status" => "2xx" }]
    %w[/health /health/live /health/ready].each { |path| assert_equal [200, "ok\n"], ask(path).first(2), path }
    assert_equal [Process.pid], client.status[:workers].map { |one| one[:pid] }
    assert_match(/waiting/, client.tasks)
    assert_equal 404, ask("/").first
    assert_equal 405, ask("/metrics", method: "POST").first
  end

  def test_a_client_that_half_closes_gets_its_response
    controlled
    %w[/status /metrics /health /tasks].each do |path|
      socket = UNIXSocket.new(@path)
      socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
      socket.close_write

      assert_match(%r{\AHTTP/1.1 200 }, read_all(socket), path)
    end
  end

  def test_the_control_socket_is_private_and_removed_at_the_end
    controlled

    assert_equal "600", (File.stat(@path).mode & 0o777).to_s(8)
    @control.stop
    refute_path_exists @path
  end

  # It sleeps in C with the loop's thread, or computes: nothing of the application's loop moves.
  def test_status_responds_while_the_application_blocks_the_loop
    entered = Thread::Queue.new
    computing = true
    app = lambda do |_env|
      entered << true
      nil while computing
      [200, {}, []]
    end
    controlled(app)
    request = Thread.new { get("/computes") }
    entered.pop
    found = client.status[:workers].first[:requests]

    assert_equal(["/computes"], found.map { |one| one[:target] })
    assert_match(/control_test\.rb/, found.first[:at].first)
    assert_equal 200, ask("/health/live").first
  ensure
    computing = false
    request&.join
  end

  def test_status_shows_a_request_that_waits_in_a_file_whose_path_is_not_utf8
    entered = Thread::Queue.new
    go = Thread::Queue.new
    code = "->(_env) { entered << true; go.pop; [200, {}, []] }"
    app = eval(code, binding, "/srv/caf\xE9/app.rb", 7) # rubocop:disable Security/Eval
    controlled(app)
    request = Thread.new { get("/waits") }
    entered.pop(timeout: PATIENCE)

    assert_match(%r{\A/srv/caf.{1,4}/app\.rb:7:}, client.status[:workers].first[:requests].first[:at].first)
  ensure
    go << true
    request&.join
  end

  def test_status_responds_at_the_limits_of_connections_and_requests
    app, entered, go = waiting_application
    controlled(app, max_requests: 1, queue_limit: 1)
    requests = Array.new(2) { Thread.new { get("/") } }
    entered.pop
    until_statistics { |found| found[:waiting] == 1 }

    assert_equal 1, client.status[:workers].first[:waiting]
    assert_equal 200, ask("/health/ready").first
  ensure
    2.times { go&.push(true) }
    requests&.each(&:join)
  end

  # Its loop waits for Ruby's lock as long as the application's thread computes: that is the application's stall.
  def test_the_control_loop_reports_no_stalls
    app = lambda do |_env|
      ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
      Heddle.without_preemption { nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ended }
      [200, {}, ["computed"]]
    end
    controlled(app, protect: %i[stall_report])
    Heddle::Stalls.reset
    get("/")
    get("/")

    assert_operator Heddle::Stalls.statistics[:by_cause][:ruby][:count], :>=, 1
    assert_equal 0, Heddle::Stalls.statistics[:by_cause][:waiting_for_gvl][:count]
  end

  def test_a_loop_that_does_not_turn_is_dead_and_a_server_that_stops_is_not_ready
    state = Struct.new(:statistics, :stopping) { def stopping? = stopping }
    source = ->(**values) { Heddle::Server::Control::SingleProcess.allocate.tap { |one| one.instance_variable_set(:@server, state.new(**values)) } }

    assert_nil source.call(statistics: { heartbeat_age: 29.0 }).dead
    assert_equal "no heartbeat of the loop for 31.0 s", source.call(statistics: { heartbeat_age: 31.04 }).dead
    assert_nil source.call(statistics: {}).unready
    assert_equal "the server is stopping", source.call(statistics: {}, stopping: true).unready
    assert_equal "the server is starting", source.call.unready
  end

  def test_while_the_server_stops_it_is_alive_and_not_ready
    app, entered, go = waiting_application
    controlled(app)
    request = Thread.new { get("/") }
    entered.pop

    assert_equal "stopping as soon as the running requests are answered", client.command("stop")
    assert_equal [503, "the server is stopping\n"], ask("/health/ready").first(2)
    assert_equal 200, ask("/health/live").first
    go.push(true)

    assert_equal "200", request.value.code
    assert wait_for_end
  end

  def test_commands_that_need_a_master_are_declined
    controlled
    error = assert_raises(Client::DeclinedError) { client.command("reload") }

    assert_match(/can't reload/, error.message)
    assert_equal 405, ask("/stop").first
    refute_predicate server, :stopping?
  end

  def test_over_tcp_there_are_no_commands_and_nothing_of_single_requests
    controlled(control: ["unix:#{@path}", "tcp://127.0.0.1:0"])
    at = ->(path) { URI("#{@control.urls.last}#{path}") }

    assert_equal "200", Net::HTTP.get_response(at.call("/metrics")).code
    assert_equal "200", Net::HTTP.get_response(at.call("/health")).code
    assert_equal "404", Net::HTTP.get_response(at.call("/status")).code
    assert_equal "404", Net::HTTP.get_response(at.call("/tasks")).code
    assert_equal "403", Net::HTTP.post(at.call("/stop"), "").code
    refute_predicate server, :stopping?
  end

  # They would have half a minute for a request.
  def test_status_responds_beside_silent_connections
    controlled(control: ["unix:#{@path}", "tcp://127.0.0.1:0"])
    port = URI(@control.urls.last).port
    [->(i) { TCPSocket.new("127.0.0.1", port, "127.0.0.#{1 + (i / 16)}", 0) },
     ->(_) { UNIXSocket.new(@path) }].each do |connect|
      silent = Array.new(96, &connect)
      socket = connect.call(96)
      socket.timeout = 20
      socket.write("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

      assert_match(%r{\AHTTP/1.1 200}, socket.read)
    ensure
      [*silent, socket].compact.each(&:close)
    end
  end

  def test_an_address_has_a_quarter_of_the_connections_over_tcp
    controlled(control: ["tcp://127.0.0.1:0"])
    port = URI(@control.urls.last).port
    sockets = Array.new(17) { TCPSocket.new("127.0.0.1", port, "127.0.0.1", 0) }
    sockets.last.timeout = 3 # less than their time for a head

    assert_raises(EOFError, Errno::ECONNRESET) { sockets.last.readpartial(1) }
    refute sockets.first.wait_readable(0)
  ensure
    sockets&.each(&:close)
  end

  def test_a_socket_that_was_left_behind_is_taken_and_one_in_use_is_not
    UNIXServer.new(@path).close
    controlled
    other = Heddle::Server::Configuration.new(control: ["unix:#{@path}"])
    error = assert_raises(Heddle::Server::BootError) { Heddle::Server::Control.open(other, nil, @log) }

    assert_match(/another server uses it/, error.message)
    assert_equal 200, ask("/health").first
  end

  # Anybody could have been there first, and is who would hear the commands.
  def test_the_default_path_is_not_in_a_world_writable_folder
    address = Heddle::Server::Control::Address
    temporary = File.join(@folder, "tmp")
    Dir.mkdir(temporary)

    assert_equal File.join(temporary, "heddle-control.sock"), address.default_path(@folder)
    File.chmod(0o1777, temporary)

    assert_equal address.own_folder, File.dirname(address.default_path(@folder))
    assert_equal address.own_folder, File.dirname(address.default_path("/")), "where tmp is everybody's"
  end

  # Of the name that the default path would have, made by another user before.
  def test_a_folder_that_is_not_this_users_alone_gets_no_socket
    address = Heddle::Server::Control::Address
    Heddle::TemporaryFolder.stub(:find, @folder) do
      own = address.own_folder
      path = File.join(own, "x.sock")
      elsewhere = File.join(@folder, "elsewhere")
      Dir.mkdir(elsewhere, 0o700)
      File.symlink(elsewhere, own)

      assert_raises(Heddle::Server::BootError, "a symbolic link") { address.new(path:).open }
      File.unlink(own)
      Dir.mkdir(own, 0o750)

      assert_raises(Heddle::Server::BootError, "its group reads it") { address.new(path:).open }
      File.chmod(0o700, own)
      foreign = File.lstat(own).tap { |stat| stat.define_singleton_method(:owned?) { false } }
      File.stub(:lstat, foreign) { assert_raises(Heddle::Server::BootError, "another's") { address.new(path:).open } }
      address.new(path:).open.each(&:close)
    end
  end

  # An abstract name has no permissions.
  def test_connections_of_other_users_to_an_abstract_name_are_closed
    address = Heddle::Server::Control::Address
    @path = Heddle::TemporaryFolder.stub(:find, nil) { address.default_path(@folder) }
    abstract = address.new(path: @path, default: true)
    address.stub(:all, [abstract]) { controlled }

    assert_match(%r{\Aunix:@heddle-#{Process.euid}/\h+\z}, abstract.to_s.delete_suffix(".sock"))
    assert_equal 200, ask("/health").first
    skip "only root can be another user" unless Process.uid.zero?

    assert_equal "", heard_as_another_user
  end

  def test_a_server_of_this_user_or_of_the_folders_owner_is_trusted
    address = Heddle::Server::Control::Address.parse("unix:#{@path}")
    another = Process.euid + 1

    refute address.trusts?(another)
    File.stat(@folder).stub(:uid, another) do |stat|
      File.stub(:stat, stat) { assert address.trusts?(another) }
    end
    File.chmod(0o1777, @folder)
    File.stat(@folder).stub(:uid, another) do |stat|
      File.stub(:stat, stat) { refute address.trusts?(another) }
    end
    assert address.trusts?(Process.euid)
  end

  def test_no_command_is_sent_to_another_users_process
    File.chmod(0o1777, @folder)
    listener = UNIXServer.new(@path)
    error = Process.stub(:euid, Process.euid + 1) { assert_raises(Client::NoServerError) { client.command("stop") } }

    assert_match(/\Aa process of another user \(uid #{Process.euid}\) listens on unix:/, error.message)
    assert_equal "", listener.accept.read, "nothing was sent"
  ensure
    listener&.close
  end

  def test_without_a_default_path_the_server_continues_and_says_so
    Dir.chdir(@folder) do
      Dir.mkdir("tmp")
      quiet = Heddle::Server::Log.new(output: StringIO.new)
      first = Heddle::Server::Control.open(Heddle::Server::Configuration.new, nil, quiet)
      log = Heddle::Server::Log.new(output: out = StringIO.new)

      assert_equal ["unix:#{File.realpath(@folder)}/tmp/heddle-control.sock"], first.urls
      assert_nil Heddle::Server::Control.open(Heddle::Server::Configuration.new, nil, log)
      assert_match(/no control socket: .*another server uses it/, out.string)
      first.stop
    end
  end

  def test_a_loop_that_fails_closes_the_sockets_and_says_so
    controlled
    thread = @control.instance_variable_get(:@thread)
    thread.raise(NoMemoryError, "none")
    thread.join(PATIENCE)

    refute_path_exists @path
    assert_match(/the control sockets are closed, because their loop has failed: NoMemoryError: none/, errors.string)
    assert_raises(Client::NotRunningError) { client.status }
    assert_equal "hello", get("/").body
  end

  def test_off_is_off
    controlled(control: [])

    assert_nil @control
  end

  def test_addresses_are_checked
    address = Heddle::Server::Control::Address
    error = assert_raises(Heddle::Server::ConfigurationError) { address.parse("nonsense") }

    assert_match(/--control must be unix:path, tcp:/, error.message)
    assert_equal ["::1", 9_293], [address.parse("tcp://[::1]:9293").host, address.parse("tcp://[::1]:9293").port]
    assert_equal ["127.0.0.1", 1], [address.parse("127.0.0.1:1").host, address.parse("127.0.0.1:1").port]
    assert_equal 2, address.all(["tcp://127.0.0.1:1"]).size, "and the default path"
    assert_empty address.all([])
    assert_equal address.default_path(@folder), address.default_path(@folder)
  end

  def test_without_a_server_the_message_says_what_to_do
    error = assert_raises(Client::NoServerError) { client.status }

    assert_match(/no server listens on.*--control unix:path/, error.message)
    refute_predicate client, :running?
  end

  def test_another_program_that_answers_is_not_a_server
    path = File.join(@folder, "foreign.sock")
    foreign = UNIXServer.new(path)
    answers = ["[]", "null", "{}", '{"workers":[1]}', "no JSON"]
    thread = Thread.new do
      answers.each do |text|
        socket = foreign.accept
        socket.readpartial(1_000)
        socket.write("HTTP/1.1 200 OK\r\n\r\n", text)
        socket.close
      end
    end
    asking = Client.new(Heddle::Server::Control::Address.new(path:))
    answers.each do |text|
      error = assert_raises(Client::NoServerError, text) { asking.status }

      assert_includes error.message, "is not a Heddle server: its status "
    end
  ensure
    thread&.join
    foreign&.close
  end

  def test_a_timed_out_command_says_that_the_server_will_still_run_it
    stopped = UNIXServer.new(@path)
    asking = Client.new(Heddle::Server::Control::Address.new(path: @path), timeout: 0.01)

    assert_match(/has not responded for .* will run the command when it continues\z/,
                 assert_raises(Client::NoServerError) { asking.command("stop") }.message)
    refute_match(/follow the command/, assert_raises(Client::NoServerError) { asking.status }.message)
  ensure
    stopped&.close
  end

  if RUBY_PLATFORM.include?("linux") # elsewhere the connection is refused
    def test_a_server_with_a_full_accept_queue_counts_as_stuck
      stopped = UNIXServer.new(@path).tap { |server| server.listen(0) }
      waiting = fill_queue

      assert_match(/accepts no connections\. The process is suspended/,
                   assert_raises(Client::NoServerError) { client.status }.message)
    ensure
      [stopped, *waiting].each { |socket| socket&.close }
    end
  end

  private

  # => the sockets that wait to be accepted
  def fill_queue
    waiting = []
    loop do
      waiting << Socket.new(:UNIX, :STREAM)
      waiting.last.connect_nonblock(Socket.sockaddr_un(@path))
    end
  rescue Errno::EAGAIN
    waiting
  end
end
