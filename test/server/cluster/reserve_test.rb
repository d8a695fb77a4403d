# frozen_string_literal: true

# test: long

require_relative "cluster_case"
require_relative "../../offload/support/native_calls"

# While every worker is stuck, a reserve responds; while one worker runs, the reserve does nothing.
class ClusterReserveTest < Minitest::Test
  include ClusterCase

  # On /burn nothing else happens in its process, whose number is in the pipe `held` then, until something is in the
  # pipe `go`. /first/burn waits before.
  APP = <<~RUBY
    require ENV.fetch("NATIVE_CALLS")
    held, go = %w[held go].map { |name| File.open(name, "r+") }
    run do |env|
      sleep 0.001 if env["PATH_INFO"].start_with?("/first")
      NativeCalls.hold_between(held.fileno, go.fileno) if env["PATH_INFO"].end_with?("/burn")
      sleep 0.2 if env["PATH_INFO"] == "/sleep"
      [200, { "x-worker" => $$.to_s }, ["here"]]
    end
  RUBY

  def setup
    super
    skip "only epoll and io_uring have a set of their own" unless RUBY_PLATFORM.include?("linux")
    %w[held go].each { |name| File.mkfifo(path(name)) }
    @held = File.open(path("held"), "r+")
    write("config.ru", APP)
  end

  def teardown
    @held&.close
    super
  end

  # With a reserve that is kept ready, as a worker takes long to start.
  def serve_app(*arguments, **options)
    write("heddle.rb", "worker_boot { sleep 0.3 }")
    serve_on_demand(*arguments, **options)
    ready = { "running" => options.fetch(:workers, 2), "reserve" => 1 }
    wait_until("not all are ready") { states.tally == ready }
  end

  def serve_on_demand(*arguments, **options)
    environment = { "RACK_ENV" => "production", "NATIVE_CALLS" => NativeCallsLibrary.path }
    serve("--control", "unix:control.sock", *arguments, reserves: 1, environment:, **options)
  end

  def all = client.status[:workers]

  def states = all.map { |one| one[:state] }

  def reserve_pid = all.find { |one| one[:state] == "reserve" }[:pid]

  def go = File.write(path("go"), "g", mode: "r+")

  # The process that has answered.
  def hear(socket)
    head = socket.gets("\r\n\r\n") or raise EOFError, "no answer"
    socket.read(head[/^content-length: (\d+)/i, 1].to_i)
    assert_match(%r{\AHTTP/1.1 200}, head, served.output)
    Integer(head[/^x-worker: (\d+)/i, 1])
  end

  def await_held(count)
    Array.new(count) do
      @held.wait_readable(PATIENCE) or flunk "nothing is held:\n#{served.output}"
      @held.gets.to_i
    end
  end

  # Blocks both workers, with so many requests for the same. The second one comes when a worker is blocked, which then
  # begins no other.
  def hold_up(count = 2, path: "/burn")
    @stuck = []
    burning = Array.new(2) { ask(path).tap { @stuck.concat(await_held(1)) } }
    burning + Array.new(count - 2) { ask(path) }
  end

  def test_fifty_requests_are_answered_while_five_others_block_every_worker
    %w[/burn /first/burn].each do |path|
      serve_app
      reserve = reserve_pid
      burning = hold_up(5, path:)
      answered = Array.new(50) { ask("/sleep") }.map { |socket| hear(socket) }

      assert_equal [reserve], answered.uniq
      assert(burning.none? { |socket| socket.wait_readable(0) })
      wait_until("none is held back, nor queued elsewhere") { metrics["heddle_reserve_serving"].values == [1] }
      go

      refute_includes burning.map { |socket| hear(socket) }, reserve
      wait_until("it does not step back") { states.include?("reserve") }
      served.stop
      drain
    end
  end

  def drain
    [@held, File.open(path("go"), "r+")].each { |io| nil while io.read_nonblock(100, exception: false).is_a?(String) }
  end

  def test_an_address_has_half_of_the_requests_that_a_reserve_defers
    serve_app("--queue-limit", "4", "--trusted-proxies", "none")
    held = hold_up(4)
    wait_until("not both are deferred") { metrics["heddle_reserve_deferred_requests"].values == [2] }
    refused = ask("/burn")

    assert_equal "HTTP/1.1 503 Service Unavailable\r\n", refused.gets
    other = TCPSocket.new(served.uri.host, served.uri.port, "127.0.0.66")
    other.write(format(GET, "/burn"))
    wait_until("another address is refused") { metrics["heddle_reserve_deferred_requests"].values == [3] }
    go
    held.each { |socket| hear(socket) }
  end

  def test_idle_connections_are_taken_and_given_back
    serve_app
    reserve = reserve_pid
    idle = Array.new(8) { ask("/").tap { |socket| hear(socket) } }
    hold_up
    idle.each { |socket| socket.write(format(GET, "/")) }

    assert_equal [reserve], idle.map { |socket| hear(socket) }.uniq
    go
    wait_until("they stay") { all.find { |one| one[:pid] == reserve }[:connections]&.zero? }
    idle.each { |socket| socket.write(format(GET, "/")) }

    refute_includes idle.map { |socket| hear(socket) }, reserve
  end

  # On a busy machine a start takes too long, and one is kept ready.
  def test_a_reserve_is_started_when_workers_are_stuck
    serve_on_demand
    kept_ready = served.output.include?("keeping a reserve worker ready")

    assert_match(/2 workers, each with one loop, and 1 in reserve(?: on demand)?\.$/, served.output)
    assert_equal 2, states.size unless kept_ready
    burning = hold_up

    refute_includes @stuck, hear(ask("/"))
    go
    burning.each { |socket| hear(socket) }
    wait_until("it does not step back") { states.tally == { "running" => 2, "reserve" => 1 } }
  end

  def test_a_reserve_serves_beside_a_single_worker
    serve_app(workers: 1)
    reserve = reserve_pid
    burning = ask("/burn")
    await_held(1)

    assert_equal reserve, hear(ask("/"))
    go
    hear(burning)

    assert_equal 1, metrics["heddle_reserve_activations_total"].values.sum
  end

  def test_a_reserve_that_dies_is_replaced_and_so_it_is_at_a_reload
    serve_app
    first = reserve_pid
    signal("KILL", first)
    wait_for("reserve worker 2 (pid #{first}) has ended: SIGKILL")
    wait_until("there is no other") { states.include?("reserve") && reserve_pid != first }
    second = reserve_pid
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")

    wait_until("it is the old one after the reload") { states.tally == { "running" => 2, "reserve" => 1 } }

    refute_equal second, reserve_pid
  end

  def test_more_and_fewer_workers_leave_as_many_reserves
    serve_app
    signal("TTIN")
    wait_until("there are not 3") { states.tally == { "running" => 3, "reserve" => 1 } }

    assert_equal [0, 1, 2, 3], all.map { |one| one[:index] }
    signal("TTOU")
    wait_until("there are not 2") { states.tally == { "running" => 2, "reserve" => 1 } }

    assert_equal [0, 1, 2], all.map { |one| one[:index] }
  end

  def test_boot_line_and_metrics_name_the_reserve
    serve_app

    wait_for("keeping a reserve worker ready, because one started on demand would be too late: the last worker took ")

    assert_match(/2 workers, each with one loop, and 1 in reserve(?: on demand)?\.$/, served.output)
    assert_equal({ { "worker" => "2" } => 0 }, metrics["heddle_reserve_serving"])
    assert_equal [1, 1, 1], metrics["heddle_worker_up"].values
  end

  def test_where_there_can_be_none_there_is_none
    count = lambda do |**options|
      Heddle::Server::Configuration.new(environment: "production", workers: 2, **options).reserve_count
    end

    assert_equal [1, 3, 1], [count.call, count.call(reserve_workers: 3), count.call(workers: 1)]
    none = [{ reserve_workers: 0 }, { workers: 0 }, { mode: :thread, threads: 5 }, { protect: [:offload] },
            { workers: 1, environment: "development" }]

    assert_equal([0] * 5, none.map { |options| count.call(**options) })
  end
end
