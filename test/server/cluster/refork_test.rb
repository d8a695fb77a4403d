# frozen_string_literal: true

require_relative "cluster_case"

# A worker that has served enough requests becomes the mold of the others, and no client notices.
class ClusterReforkTest < Minitest::Test
  include ClusterCase

  # Says how many requests its process, and those that it was forked from, have served.
  APP = <<~RUBY
    $served = []
    File.write("loads", "x", mode: "a")
    run do |env|
      $served << $$
      sleep 0.01 until env["PATH_INFO"] != "/hold" || File.exist?("go")
      [200, { "x-worker" => $$.to_s, "x-served-by" => $served.uniq.join(" ") }, ["code 1"]]
    end
  RUBY

  def setup
    super
    write("config.ru", APP)
  end

  def test_the_workers_share_what_one_of_them_has_warmed_up
    serve("--refork-after", "50", "--control", "unix:control.sock")
    before = workers
    load = self.load
    wait_for("reforked: 2 workers serve and share the memory of a warm worker")
    load.wait_for(100)
    load.stop

    assert_empty load.failures
    assert_equal 0, load.closed, "connections that were closed without a word"
    served_by = Array.new(20) { served.get("/")["x-served-by"].split.map(&:to_i) }
    assert_equal 1, served_by.map(&:first).uniq.size, "all come from one"
    assert_includes before, served_by.first.first
    assert_equal "x", File.read(path("loads")), "the application was loaded once"
    assert_equal before.size, workers.size
    assert_empty before & workers
    wait_until("the former mold is there") { molds.size == 1 }

    assert_stripped molds.first
  end

  def test_the_new_mold_replaces_workers_and_is_replaced_by_a_reload
    serve("--refork-after", "5", "--control", "unix:control.sock")
    wait_until("there is no refork") { served.get("/") && said("reforked: 2 workers serve").positive? }
    warm = served.get("/")["x-served-by"].split.first
    killed = worker
    signal("KILL", killed)
    wait_until("it is not replaced") { workers.none?(killed) }

    assert_equal [warm], Array.new(10) { served.get("/")["x-served-by"].split.first }.uniq
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")

    refute_includes served.get("/")["x-served-by"].split, warm
    signal("TERM")

    assert_equal 0, served.wait
  end

  # All workers would send on it, and get each other's responses.
  def test_connections_that_the_application_opened_while_it_served_are_not_shared
    upstream = TCPServer.new("127.0.0.1", 0)
    accepted = Thread.new { Array.new(3) { upstream.accept } }
    write("config.ru", <<~RUBY)
      require "socket"
      run do |env|
        $upstream = nil if $upstream&.read_nonblock(1, exception: false).nil?
        $upstream ||= TCPSocket.new("127.0.0.1", #{upstream.addr[1]})
        [200, { "x-worker" => $$.to_s, "x-port" => $upstream.local_address.ip_port.to_s }, []]
      end
    RUBY
    serve("--refork-after", "5", "--control", "unix:control.sock")
    wait_until("there is no refork") { served.get("/") && said("reforked: 2 workers serve").positive? }
    ports = {}
    wait_until("a worker is missing") do
      answer = served.get("/")
      (ports[answer["x-worker"]] = answer["x-port"]) && ports.size == 2
    end

    assert_equal 2, ports.values.uniq.size, "each worker has a connection of its own"
    accepted.value.each(&:close)
  ensure
    accepted&.kill
    upstream&.close
  end

  # The worker that was to become the mold has requests that outlast its time.
  def test_a_worker_that_cannot_be_drained_cancels_the_refork
    serve("--refork-after", "5", "--stop-timeout", "1")
    first = workers
    held = Array.new(8) { ask("/hold") }
    wait_until("it is not told") { served.get("/") && said("refork failed: the mold that a worker").positive? }
    write("go", "")
    held.each(&:close)

    assert_equal 2, workers.size
    assert_operator (workers & first).size, :<=, 1
  ensure
    held&.each(&:close)
  end

  def test_a_server_stops_during_a_refork
    serve("--refork-after", "5", "--stop-timeout", "600", "--control", "unix:control.sock")
    held = Array.new(2) { ask("/hold") }
    wait_until("no worker leaves") { served.get("/") && leaving? }
    signal("TERM")
    write("go", "")

    assert_equal 0, served.wait
    held.each { |socket| assert_match(/ 200 /, socket.gets) }
  end

  # The processes from which this server forks its workers.
  def molds
    Dir["/proc/[0-9]*/stat"].filter_map do |file|
      parent = File.read(file)[/.*\) \w (\d+)/, 1].to_i
      file[/\d+/].to_i if parent == served.pid && File.read(file.sub("stat", "cmdline")).start_with?("heddle: mold")
    rescue SystemCallError
      nil
    end
  end

  # A mold has no thread of Heddle's, no connection and no ring.
  def assert_stripped(mold)
    files = Dir["/proc/#{mold}/fd/*"].filter_map { |file| File.readlink(file) if File.symlink?(file) }

    refute_empty files
    assert_empty files.grep(/io_uring/)
    assert_empty files.grep(/socket:/).map { |file| file[/\d+/] } & established
    assert_empty Dir["/proc/#{mold}/task/*/comm"].map { |file| File.read(file).strip }.grep(/heddle|offload|watch/i)
  end

  # The inodes of established connections of TCP.
  def established
    Dir["/proc/net/tcp{,6}"].flat_map { |file| File.readlines(file).drop(1).map(&:split) }
                            .filter_map { |line| line[9] if line[3] == "01" }
  end

  # Whether a worker answers what it has, and no more.
  def leaving? = client.status[:workers].any? { |one| one[:state] == "ending" }
end
