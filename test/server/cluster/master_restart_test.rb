# frozen_string_literal: true

require_relative "cluster_case"

# A new master, from new code, on the same sockets.
class ClusterMasterRestartTest < Minitest::Test
  include ClusterCase

  def teardown
    # It is no child of the test's.
    signal("KILL", @master) if @master && alive?(@master)
    super
  end

  def test_a_new_master_takes_over_under_load_and_fails_no_request
    serve("--pidfile", "server.pid")
    old = served.pid
    load = self.load
    load.wait_for(50)
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("USR2")
    wait_for("serves; the old master ends")
    wait_until { File.read(path("server.pid")).to_i != old }
    @master = File.read(path("server.pid")).to_i
    wait_until { !alive?(old) }
    load.wait_for(100)

    load.stop

    assert_equal "code 2", served.get("/").body
    assert_empty load.failures
    assert_equal 0, load.closed
    signal("TERM", @master)
    wait_until { !alive?(@master) }

    refute_path_exists path("server.pid")
  end

  # Its workers could not read what the old ones hand off.
  def test_a_new_master_with_another_format_of_handoffs_fails_no_request_and_gets_no_connection
    serve("--pidfile", "server.pid")
    old = served.pid
    idle = ask("/").tap { |socket| socket.readpartial(10_000) }
    load = self.load
    load.wait_for(50)
    write("config/heddle.rb", <<~RUBY)
      Heddle::Net::Sockets.send(:remove_const, :HANDOFF_VERSION)
      Heddle::Net::Sockets.const_set(:HANDOFF_VERSION, 1_000)
    RUBY
    signal("USR2")
    wait_until { !alive?(old) }
    @master = File.read(path("server.pid")).to_i
    load.wait_for(100)
    load.stop

    assert_empty load.failures
    assert idle.wait_readable(PATIENCE), "it moved"
    assert_nil idle.read(1)
  end

  def test_hooks_of_the_master_run_when_it_has_booted_and_before_a_new_one_is_started
    write("config/heddle.rb", <<~'RUBY')
      on_booted { raise "no pager" }
      on_booted { raise NoMemoryError, "no room" }
      on_booted { exit 3 }
      on_booted { File.write("notes", "booted #{$$}\n", mode: "a") }
      on_restart { File.write("notes", "restart #{$$}\n", mode: "a") }
    RUBY
    serve("--pidfile", "server.pid")
    old = served.pid
    signal("HUP")
    wait_for("reloaded")
    signal("USR2")
    wait_until { !alive?(old) }
    @master = File.read(path("server.pid")).to_i
    wait_until { File.readlines(path("notes")).size == 3 }

    assert_equal ["booted #{old}", "restart #{old}", "booted #{@master}"], File.readlines(path("notes"), chomp: true)
    assert_includes served.output, "the hook on_booted failed: RuntimeError: no pager (config/heddle.rb:1"
    assert_includes served.output, "the hook on_booted failed: NoMemoryError: no room (config/heddle.rb:2"
    assert_includes served.output, "the hook on_booted failed: SystemExit: exit (config/heddle.rb:3"
  end

  def test_a_new_master_that_cannot_start_leaves_the_old_one_serving
    serve("--pidfile", "server.pid", "-b", "unix:web.sock")
    write("config.ru", "raise 'broken'")
    signal("USR2")
    wait_for(/restart failed: the new master could not start.*; keeping this master$/)

    UNIXSocket.new(path("web.sock")).close # its file is still there

    assert_equal 1, said("RuntimeError: broken"), served.output
    assert_equal served.pid, File.read(path("server.pid")).to_i
    assert_equal "code 1", served.get("/").body
    write("config.ru", APP)
    signal("HUP")
    wait_for("reloaded")
  end

  # A program that continues after the server's end would keep its port in use.
  def test_programs_of_the_application_inherit_no_descriptors_after_a_restart
    write("config.ru", <<~'RUBY')
      found = "find /proc/self/fd -lname 'socket:*' -o -lname '*heddle-*' -o -lname '*eventfd*'"
      run ->(_) { [200, { "x-worker" => $$.to_s }, [`#{found}`]] }
    RUBY
    serve("--pidfile", "server.pid", "-b", "unix:web.sock")
    old = served.pid

    assert_empty served.get("/").body
    signal("USR2")
    wait_until { !alive?(old) }
    @master = File.read(path("server.pid")).to_i

    assert_empty served.get("/").body
  end

  def test_a_reload_during_a_restart_is_refused_in_the_log
    serve
    write("config.ru", "sleep 0.01 until File.exist?('go')\nraise 'broken'")
    signal("USR2")
    wait_for("starting a new master")
    signal("HUP")
    wait_for("reload failed: a new master is being started; keeping the current workers")
    signal("USR2")
    wait_for("restart failed: a new master is being started; keeping this master")
    write("go", "")
    wait_for("RuntimeError: broken")
  end

  def test_a_stop_during_a_restart_ends_the_new_master_too
    serve("--pidfile", "server.pid")
    old = served.pid
    write("config.ru", "$stdout.puts \"loading in \#{Process.ppid}\"\n$stdout.flush\nsleep #{PATIENCE + 5}\n#{APP}")
    signal("USR2")
    wait_for(/loading in \d+$/)
    @master = served.output[/loading in (\d+)$/, 1].to_i
    signal("TERM")
    wait_until { !alive?(old) }

    refute alive?(@master), "the new master"
    refute_path_exists path("server.pid")
    refute_includes served.output, "restart failed"
  end

  # The kernel kills all processes of a container when its first one ends.
  def test_a_master_that_is_process_1_of_a_container_is_not_replaced
    serve("--control", "unix:control.sock", within: FirstOfContainer)
    error = assert_raises(Heddle::Server::Control::Client::DeclinedError) { client.complete("restart") }

    assert_match(/process 1 of a container/, error.message)
    assert_equal "code 1", served.get("/").body
    wait_for("restart failed: process 1 of a container")
    refute_includes served.output, "starting a new master"
  ensure
    signal("TERM", children_of(served.pid).first)
  end

  # Where the master has the process id 1.
  module FirstOfContainer
    def self.command(command)
      user = Process.uid.zero? ? [] : ["--map-root-user"]
      ["unshare", *user, "--pid", "--fork", "--mount-proc", *command]
    end
  end
  private_constant :FirstOfContainer

  def test_a_new_configuration_without_workers_does_not_replace_the_master
    serve
    write("config/heddle.rb", "mode :single\n")
    signal("USR2")
    wait_for("a restart can't change a server with several processes into a single process")
    wait_for(/restart failed: the new master could not start.*; keeping this master$/)

    assert_equal "code 1", served.get("/").body
  end
end
