# frozen_string_literal: true

# test: long

require "test_helper"
require "open3"
require_relative "served_folder"

# The command as a person starts and stops it.
class ServeTest < Minitest::Test
  include ServedFolder

  alias serve start

  def test_serve_finds_the_config_ru_of_the_folder_and_says_where_it_serves
    serve("serve")

    assert_equal "hello from config.ru", @served.get("/").body
    address = @served.uri.to_s.chomp("/")

    assert_match(/^Heddle .* serves config\.ru on #{address}$/, @served.output)
    assert_predicate @served.stop, :success?
    assert_match(%r{^\d\d:\d\d:\d\d 200 GET / 20 bytes in [\d.]+ ms for (127\.0\.0\.1|::1)$}, @served.output)
    @served = nil
  end

  def test_flags_alone_serve_the_folders_config_ru
    serve

    assert_equal "hello from config.ru", @served.get("/").body
  end

  def test_no_argument_serves_the_folders_config_ru
    File.write(file("config.ru"), "puts __FILE__\nexit")
    output, = Open3.capture2e(*ServedProcess::HEDDLE, chdir: @folder)

    assert_match(/config\.ru\n.*the application ended the process while it was loaded/m, output)
    File.delete(file("config.ru"))

    assert_includes heddle_output, "Heddle serves Rack applications"
  end

  def test_a_log_file_says_when_the_server_has_started_too
    serve("serve", "--log-file", "heddle.log")
    @served.stop
    @served = nil

    assert_match(/\A[\d-]{10} [\d:]{8} Heddle .* serves config\.ru on http.*\n    Mode fiber: .*\.$/,
                 File.read(file("heddle.log")))
  end

  def test_the_boot_line_names_mode_and_protections
    serve("serve", "--mode", "thread", "--threads", "3")
    wait_until { @served.output.include?("Ctrl-C stops it") }

    assert_match(/^Mode thread: this process, 3 threads\.$/, @served.output)
    assert_match(/^Protection: .*preempt, stall_report.* \(requests run in threads, mode thread: --mode\)/,
                 @served.output)
  end

  def test_a_file_alone_is_served
    File.write(file("other.ru"), CONFIG)
    serve("other.ru", "--no-access-log")

    assert_equal "hello from other.ru", @served.get("/").body
    @served.stop
    refute_match(/GET/, @served.output)
    @served = nil
  end

  # As with workers: status 0 would tell a service manager that the server was stopped.
  def test_an_application_that_cannot_be_loaded_leaves_no_socket
    File.write(file("config.ru"), "raise 'broken'")
    %w[0 2].each do |workers|
      _, status = Open3.capture2e(*ServedProcess::HEDDLE, "serve", "-w", workers, "-b", "unix:a.sock", chdir: @folder)

      assert_equal 1, status.exitstatus
      refute_path_exists file("a.sock"), "with #{workers} workers"
    end
  end

  def test_an_application_that_ends_the_process_while_it_is_loaded_is_a_failure
    File.write(file("config.ru"), "exit")
    output, status = Open3.capture2e(*ServedProcess::HEDDLE, "serve", "--port", "0", chdir: @folder)

    assert_equal "heddle: the application ended the process while it was loaded, with status 0 (config.ru:1)\n", output
    assert_equal 1, status.exitstatus
  end

  def test_the_demo_is_served
    serve("demo")

    assert_equal "200", @served.get("/").code
    assert_match(/serves the demo site on /, @served.output)
    assert_match(/answered \d/, heddle_output("status"))
    heddle_output("stop")
    @served.wait
    @served = nil
  end

  def test_the_demos_own_requests_do_not_go_where_the_host_header_says
    serve("demo")
    answer = Net::HTTP.start(@served.uri.host, @served.uri.port) { |http| http.get("/fifty", "host" => "example.org:9") }

    assert_equal 50, answer.body.scan(/"event":"end".*"status":200/).size, answer.body[0, 500]
  end

  def test_the_demo_has_no_access_log_by_default
    serve("demo")
    @served.get("/hello")
    @served.stop

    refute_includes @served.output, "GET /hello"
    serve("demo", "--access-log")
    @served.get("/hello")
    @served.stop

    assert_includes @served.output, "GET /hello"
    @served = nil
  end

  # The limit on stopping is 30 s by default; a server that had to cut one off would not end with success.
  def test_pulse_ends_by_itself_when_the_demo_stops
    serve("demo")
    socket = TCPSocket.new(@served.uri.host, @served.uri.port)
    socket.write("GET /pulse HTTP/1.1\r\nHost: a\r\n\r\n")

    assert_match(/ 200 /, socket.gets)
    status = @served.stop

    assert_match(/\n\r\n0\r\n\r\n\z/, socket.read, @served.output)
    assert_predicate status, :success?
    @served = nil
  end

  { "TERM" => "term", "QUIT" => "quit", "HUP" => "a_terminal_that_closes" }.each do |signal, cause|
    define_method("test_#{cause}_lets_running_requests_finish") do
      serve("serve")
      socket = waiting_request
      Process.kill(signal, @served.pid)
      wait_until { @served.output.include?("when running requests are answered") }
      File.write(file("go"), "")

      assert_match(/connection: close.*hello/m, socket.read)
      assert_predicate @served.wait, :success?
      @served = nil
    end
  end

  def test_signals_that_only_a_master_can_follow_end_nothing_and_are_answered_in_the_log
    serve("serve")
    %w[USR1 USR2 TTIN TTOU].each do |name|
      Process.kill(name, @served.pid)
      wait_until { @served.output.match?(/ignoring #{name}: .*one process.*--workers 2$/) }
    end

    assert_equal "hello from config.ru", @served.get("/").body
  end

  def test_a_signal_that_the_application_has_claimed_stays_its_own
    File.write(file("config.ru"), "trap('USR1') { File.write('heard', '') }\n#{CONFIG}")
    serve("serve")
    wait_until { @served.output.include?("Ctrl-C stops it") }
    Process.kill("USR1", @served.pid)
    wait_until { File.exist?(file("heard")) }

    refute_includes @served.output, "ignoring"
  end

  # What tells a fiber to end reaches it where it waits: this one never does.
  def test_an_endless_request_does_not_prevent_a_stop
    File.write(file("config.ru"), "run ->(_env) { File.write('arrived', ''); loop {} }")
    serve("serve", "--stop-timeout", "0.1")
    waiting_request("/for/ever")

    assert_equal 1, @served.stop.exitstatus
    assert_match(%r{stopping after 0\.1 s with 1 request unanswered: GET /for/ever for \d+\.\d s$}, @served.output)
    assert_match(/killing the server, because it has not ended within \d+(\.\d+)? s of the signal to stop$/,
                 @served.output)
    @served = nil
  end

  # Each one would postpone the end of what does not stop, here of a request that survives being cancelled.
  def test_a_second_sigterm_changes_nothing
    File.write(file("config.ru"), "run ->(_) { File.write('arrived', ''); begin; sleep; rescue Exception; retry; end }")
    serve("serve", "--stop-timeout", "1")
    waiting_request("/for/ever")
    Process.kill("TERM", @served.pid)
    wait_until { @served.output.include?("when running requests") }
    Process.kill("TERM", @served.pid)

    assert_equal 1, @served.stop.exitstatus
    assert_equal 1, @served.output.scan("when running requests are answered").size
    assert_match(/not ended within 6 s of/, @served.output)
    @served = nil
  end

  def test_a_second_ctrl_c_stops_at_once
    serve("serve", "--stop-timeout", "600")
    socket = waiting_request
    Process.kill("INT", @served.pid)
    wait_until { @served.output.include?("Ctrl-C again stops at once") }
    status = @served.stop

    assert_equal 1, status.exitstatus, @served.output
    assert_operator socket.read, :start_with?, "HTTP/1.1 503 "
    assert_match(/stopping (after \S+ s )?with 1 request unanswered/, @served.output)
    refute_match(%r{lib/heddle}, @served.output)
    @served = nil
  end
end
