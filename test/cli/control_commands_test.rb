# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "pty"
require "io/console"
require_relative "served_folder"

# The commands for a running server, started in its folder.
class ControlCommandsTest < Minitest::Test
  include ServedFolder

  def setup
    super
    Dir.mkdir(file("tmp"))
  end

  def serve(*) = start("serve", *)

  # @return [Array(String, Process::Status)]
  def heddle(*arguments, folder: @folder)
    Open3.capture2e(*ServedProcess::HEDDLE, *arguments, chdir: folder)
  end

  def waiting_request = super("/wait?a=x[31m")

  def test_status_shows_the_worker_and_the_requests_that_run
    serve
    socket = waiting_request
    output, status = heddle("status")

    assert_predicate status, :success?, output
    assert_match(%r{^Heddle .*http://localhost:\d+$}, output)
    assert_match(/^ *0 +#{@served.pid} +running /, output)
    assert_match(%r{ GET +/wait\?a=.* config\.ru:4}, output)
    report = JSON.parse(heddle("status", "--json").first)

    assert_equal @served.pid, report["workers"].first["pid"]
    assert_match(/config\.ru:4/, heddle("status", "--tasks").first)
  ensure
    File.write(file("go"), "")
    socket&.read(12)
    socket&.close
  end

  def test_status_counts_the_requests_that_were_rejected
    serve
    2.times do
      TCPSocket.open(@served.uri.host, @served.uri.port) { |socket| [socket.write("GET\r\n\r\n"), socket.read] }
    end
    output, status = heddle("status")

    assert_predicate status, :success?, output
    assert_match(/ rejected 2 /, output)
  end

  def test_commands_find_the_socket_that_the_configuration_file_names
    Dir.mkdir(file("config"))
    File.write(file("config/heddle.rb"), "control \"unix:named.sock\"\n")
    serve
    output, status = heddle("status")

    assert_predicate status, :success?, output
    File.chmod(0o666, file("config/heddle.rb"))
    output, status = heddle("status")

    refute_predicate status, :success?, "a file that everybody may write to is not run"
    assert_match(/no server listens on/, output)
    File.write(file("config/heddle.rb"), "workrs 1\n")
    File.chmod(0o644, file("config/heddle.rb"))

    %w[status top stop reload restart].each do |command|
      output, status = heddle(command)

      assert_equal 1, status.exitstatus
      assert_match(%r{\Aheddle: config/heddle\.rb:1: .* workrs\. Did you mean workers\? So .*\n +no server listens on},
                   output, command)
    end
  end

  def test_a_mistake_in_the_configuration_file_does_not_hide_a_server_on_the_default_socket
    serve
    Dir.mkdir(file("config"))
    File.write(file("config/heddle.rb"), "contrl 1\n")
    output, status = heddle("status")

    assert_predicate status, :success?, output
  end

  def test_top_needs_a_terminal_and_names_the_command_that_needs_none
    serve
    output, status = heddle("top")

    assert_equal [2, "heddle: heddle top needs a terminal; heddle status works without a terminal\n"],
                 [status.exitstatus, output]
  end

  def test_top_without_a_server_leaves_the_screen_as_it_is
    screen = +""
    PTY.spawn({ "TERM" => "xterm" }, *ServedProcess::HEDDLE, "top", chdir: @folder) do |output, _, pid|
      read_until(output, screen) { false }

      assert_equal 1, Process.wait2(pid).last.exitstatus
    end

    assert_match(/no server listens on/, screen)
    refute_includes screen, "\e[?1049"
  end

  def test_top_draws_and_quits
    serve
    screen = +""
    status = nil
    PTY.spawn({ "TERM" => "xterm" }, *ServedProcess::HEDDLE, "top", "--interval", "0.1",
              chdir: @folder) do |output, input, pid|
      input.winsize = [24, 80]
      read_until(output, screen) { screen.include?("no request runs") && screen.include?("q quits") }
      frames = screen.b.split("\e[H".b)

      assert_operator frames.map { |frame| frame.count("\n") }.max, :<, 24
      input.winsize = [10, 60]
      input.write("q")
      read_until(output, screen) { false }
      status = Process.wait2(pid).last
    end

    assert_predicate status, :success?, screen
    assert_operator screen, :end_with?, "\e[?1049l", "the terminal is as it was"
  end

  def read_until(output, screen)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      raise "nothing happens: #{screen}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      next unless output.wait_readable(1)

      screen << output.readpartial(65_536)
    end
  rescue EOFError, Errno::EIO
    nil # a terminal whose other side is gone
  end

  def test_stop_waits_until_the_server_has_answered_and_ended
    serve
    socket = waiting_request
    stopping = Thread.new { heddle("stop") }
    wait_until { @served.output.include?("heddle stop") }

    assert_predicate stopping, :alive?
    File.write(file("go"), "")
    output, status = stopping.value

    assert_predicate status, :success?, output
    assert_equal "stopping as soon as the running requests are answered\nstopped\n", output
    assert_match(/hello/, socket.read)
    assert_predicate @served.wait, :success?
    @served = nil
    refute_path_exists file("tmp/heddle-control.sock")
  ensure
    socket&.close
  end

  def test_stop_says_that_requests_were_cut_off_and_fails_as_the_server_does
    [[], %w[--workers 1]].each do |flags|
      serve("--stop-timeout", "0.1", *flags)
      socket = waiting_request
      output, status = heddle("stop")

      assert_equal 1, status.exitstatus, output
      assert_match(/^stopped$/, output)
      assert_match(/^heddle: some requests were cut off before they were answered/, output)
      assert_equal 1, @served.wait.exitstatus
      socket.close
      File.unlink(file("arrived"))
    end
    @served = nil
  end

  def test_stop_now_says_that_requests_were_cut_off_which_was_its_order
    serve
    socket = waiting_request
    output, status = heddle("stop", "--now")

    assert_predicate status, :success?, output
    assert_match(/^heddle: some requests were cut off before they were answered/, output)
    assert_equal 1, @served.wait.exitstatus
    @served = nil
  ensure
    socket&.close
  end

  def test_stop_fails_where_the_server_was_killed_meanwhile
    serve
    socket = waiting_request
    stopping = Thread.new { heddle("stop") }
    wait_until { @served.output.include?("heddle stop") }
    Process.kill(:KILL, @served.pid)
    output, status = stopping.value

    assert_equal 1, status.exitstatus, output
    assert_match(/^heddle: the server ended without reporting/, output)
    @served.wait
    @served = nil
  ensure
    socket&.close
  end

  def test_commands_that_need_a_master_are_declined_by_a_single_process
    serve
    %w[reload restart].each do |command|
      output, status = heddle(command)

      assert_equal 1, status.exitstatus
      assert_match(/heddle: a server with one process can't #{command}/, output)
    end
  end

  def test_without_a_server_the_message_says_what_to_do
    %w[status top stop reload restart].each do |command|
      output, status = heddle(command)

      assert_equal 1, status.exitstatus, command
      assert_equal 1, output.lines.size, output
      assert_match(/heddle: no server listens on unix:.*--control unix:path/, output)
    end
  end

  def test_a_socket_of_another_name_is_found_by_flag_and_by_environment
    serve("--control", "unix:other.sock")

    assert_predicate heddle("status", "--control", "unix:other.sock").last, :success?
    assert_predicate Open3.capture2e({ "HEDDLE_CONTROL" => "unix:other.sock" }, *ServedProcess::HEDDLE, "status",
                                     chdir: @folder).last, :success?
    refute_predicate heddle("status").last, :success?
    serve_off = heddle("status", "--control", "nonsense")

    assert_equal 2, serve_off.last.exitstatus
    assert_match(/--control must be/, serve_off.first)
  end

  def test_help_tells_the_flags
    %w[status top stop reload restart doctor].each do |command|
      [[command, "--help"], ["help", command]].each do |words|
        output, status = heddle(*words)

        assert_predicate status, :success?
        assert_match(/heddle #{command}.*--help/m, output)
      end
    end
    output, status = heddle("status", "--nonsense")

    assert_equal 2, status.exitstatus
    assert_match(/heddle: invalid option: --nonsense\. `heddle help status`/, output)
  end
end
