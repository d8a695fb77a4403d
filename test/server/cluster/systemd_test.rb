# frozen_string_literal: true

require "test_helper"
require "socket"
require_relative "cluster_case"

# What a master tells systemd, over a real socket.
class ClusterSystemdTest < Minitest::Test
  include ClusterCase

  def setup
    super
    @manager = Socket.new(:UNIX, :DGRAM)
    @manager.bind(Socket.sockaddr_un(path("notify")))
  end

  def teardown
    super
    @manager.close
  end

  def serve(*, **more)
    super(*, environment: { "RACK_ENV" => "production", "NOTIFY_SOCKET" => path("notify"), **more })
  end

  # @return [String] the first message that begins so
  def heard(beginning)
    deadline = now + PATIENCE
    loop do
      flunk "not told: #{beginning}\n#{served.output}" unless @manager.wait_readable([deadline - now, 0.001].max)
      text = @manager.recvfrom_nonblock(4_096).first
      return text if text.start_with?(beginning)
    end
  end

  def test_systemd_gets_ready_reloading_and_stopping
    serve

    assert_match(%r{\AREADY=1\nSTATUS=2 workers serve http://127\.0\.0\.1:\d+\n\z}, heard("READY"))
    signal("HUP")

    assert_match(/\ARELOADING=1\nMONOTONIC_USEC=\d+\n/, heard("RELOADING"))
    heard("READY")
    signal("TERM")

    assert_equal "STOPPING=1\nSTATUS=stopping\n", heard("STOPPING")
  end

  # systemd waits for both messages of each reload.
  def test_a_reload_that_fails_is_over_at_once_and_the_status_says_why
    serve
    heard("READY")
    File.write(path("heddle.rb"), "workerz 3")
    signal("HUP")
    heard("RELOADING")

    assert_match(/^STATUS=2 workers serve .*; not reloaded: heddle\.rb:1: there is no option workerz/, heard("READY"))
    File.delete(path("heddle.rb"))
    File.write(path("config.ru"), "raise 'no database'")
    signal("HUP")
    heard("RELOADING")

    assert_match(/^STATUS=2 workers serve .*; not reloaded: config\.ru can't be loaded: .*no database/, heard("READY"))
    File.write(path("config.ru"), APP)
    File.write(path("heddle.rb"), "worker_boot { raise 'no cache' }")
    signal("HUP")
    heard("RELOADING")

    assert_match(/^STATUS=2 workers serve .*; not reloaded: worker \d .*could serve: .*no cache/, heard("READY"))
  end

  def test_watchdog_is_sent_as_long_as_some_worker_runs
    serve("WATCHDOG_USEC" => "200000")
    heard("READY")
    2.times { assert_equal "WATCHDOG=1\n", heard("WATCHDOG") }
    pids = workers
    pids.each { |pid| signal("KILL", pid) }
    heard("WATCHDOG")
  end

  def test_a_new_master_is_the_service_from_then_on
    serve("WATCHDOG_USEC" => "200000", "WATCHDOG_PID" => "1")
    heard("READY")
    signal("USR2")
    heard("READY")
    pid = heard("MAINPID=")[/\d+/].to_i

    refute_equal served.pid, pid
    heard("WATCHDOG")
  ensure
    signal("TERM", pid) if pid
    wait_until { !alive?(pid) } if pid
  end
end
