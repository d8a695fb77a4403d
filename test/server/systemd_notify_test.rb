# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "support/served_process"
require "tmpdir"

class SystemdNotifyTest < Minitest::Test
  Notify = Heddle::Server::SystemdNotify

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "notify")
    @manager = Socket.new(:UNIX, :DGRAM)
    @manager.bind(Socket.sockaddr_un(@path))
  end

  def teardown
    @manager.close
    FileUtils.remove_entry(@folder)
  end

  def heard = @manager.recvfrom_nonblock(4_096).first

  def notify(**more) = Notify.new({ "NOTIFY_SOCKET" => @path }.merge(more.transform_keys(&:to_s)))

  def test_a_status_that_is_not_utf8_is_sent
    assert notify.ready("serving on unix:/srv/caf\xE9/app.sock")
    assert_equal "READY=1\nSTATUS=serving on unix:/srv/caf\\xE9/app.sock\n", heard
  end

  def test_each_state_is_sent_to_systemd
    one = notify

    assert one.ready("serving on\nhttp://localhost")
    assert_equal "READY=1\nSTATUS=serving on http://localhost\n", heard
    assert one.stopping
    assert_equal "STOPPING=1\nSTATUS=stopping\n", heard
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
    assert one.reloading
    lines = heard.lines(chomp: true)

    assert_equal "RELOADING=1", lines[0]
    assert_operator lines[1].delete_prefix("MONOTONIC_USEC=").to_i, :>=, before
    assert one.watchdog
    assert_equal "WATCHDOG=1\n", heard
    assert one.main_pid(12)
    assert_equal "MAINPID=12\n", heard
  end

  def test_an_abstract_socket_is_reached
    name = "@heddle-test-#{Process.pid}-#{object_id}"
    manager = Socket.new(:UNIX, :DGRAM)
    manager.bind(Socket.sockaddr_un(name.sub("@", "\0")))

    assert Notify.new({ "NOTIFY_SOCKET" => name }).ready
    assert_match(/\AREADY=1/, manager.recvfrom_nonblock(4_096).first)
  ensure
    manager&.close
  end

  def test_a_sign_of_life_comes_twice_as_often_as_it_is_wanted
    assert_in_delta 15.0, notify(WATCHDOG_USEC: "30000000").interval
    assert_in_delta 15.0, notify(WATCHDOG_USEC: "30000000", WATCHDOG_PID: Process.pid.to_s).interval
    assert_nil notify(WATCHDOG_USEC: "30000000", WATCHDOG_PID: "1").interval, "for another process"
    assert_nil notify.interval
    assert_nil Notify.new({ "WATCHDOG_USEC" => "30000000" }).interval
  end

  # @return [Array<String>] the messages up to the one that begins so
  def heard_until(beginning)
    messages = []
    until messages.last&.start_with?(beginning)
      raise "not told: #{beginning}, but #{messages}" unless @manager.wait_readable(60)

      messages << heard
    end
    messages
  end

  def test_a_server_tells_of_its_life
    File.write(File.join(@folder, "config.ru"), "run ->(env) { [200, {}, []] }")
    environment = { "NOTIFY_SOCKET" => @path, "WATCHDOG_USEC" => "100000" }
    served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-p", "0"], folder: @folder, environment:)

    assert_match(%r{\AREADY=1\nSTATUS=serves config.ru on http://.*\n\z}, heard_until("READY").last)
    assert_equal "WATCHDOG=1\n", heard_until("WATCHDOG").last
    Process.kill("TERM", served.pid)

    assert_equal "STOPPING=1\nSTATUS=stopping\n", heard_until("STOPPING=1").last
  ensure
    served&.stop
  end

  def test_without_a_manager_nothing_happens
    refute_predicate Notify.new({}), :enabled?
    refute Notify.new({}).ready
    refute Notify.new({ "NOTIFY_SOCKET" => "#{@folder}/none" }).ready
    refute Notify.new({ "NOTIFY_SOCKET" => "/#{"x" * 200}" }).ready
  end
end
