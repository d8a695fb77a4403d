# frozen_string_literal: true

# test: smoke

require "test_helper"
require "open3"
require_relative "server_helpers"

class ServerTest < Minitest::Test
  include ServerHelpers

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  LAST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

  def echo
    lambda do |env|
      body = env["rack.input"].read
      [200, { "content-type" => "text/plain" },
       ["#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]} #{body.bytesize} #{body[0, 20]}"]]
    end
  end

  def test_running_request_has_the_address_of_a_peer_that_is_no_trusted_proxy
    running = nil
    app = lambda do |_env|
      running = server.running_requests
      [200, {}, []]
    end
    serving(app, trusted_proxies: []) { get("/", "X-Forwarded-For" => "192.0.2.7") }

    assert_equal(["127.0.0.1"], running.map { |_, request| request[3] })
  end

  def test_net_http_gets_and_posts_over_one_connection
    serving(echo) do
      Net::HTTP.start("127.0.0.1", port) do |http|
        assert_equal "GET /a 0 ", http.get("/a").body
        assert_equal "POST /b 5 hello", http.post("/b", "hello").body
        assert_equal "POST /c 200000 xxxxxxxxxxxxxxxxxxxx", http.post("/c", "x" * 200_000).body
        assert_equal("204", http.head("/d").then { "204" })
      end
    end

    assert_empty errors.string
    assert_equal 4, output.string.lines.grep(/^[\d:]+ 20\d /).size
  end

  def test_curl_sends_and_receives
    curl = need_program("curl")
    serving(echo) do
      url = "http://127.0.0.1:#{port}"

      assert_equal "GET /x 0 ", curl(curl, "#{url}/x")
      assert_equal "POST / 3 a=b", curl(curl, "-d", "a=b", "#{url}/")
      large = "y" * 2_000_000

      assert_equal "POST / 2000000 #{"y" * 20}", curl(curl, "--data-binary", "@-", "#{url}/", input: large),
                   "Expect: 100-continue"
      assert_equal "PUT / 2000000 #{"y" * 20}",
                   curl(curl, "-T", "-", "-H", "Transfer-Encoding: chunked", "#{url}/", input: large)
      assert_equal "POST / 3 a=b", curl(curl, "-0", "-d", "a=b", "#{url}/"), "HTTP/1.0"
      assert_match(/\AHTTP.1.1 200 OK\r$/, curl(curl, "-I", "#{url}/x"))
    end
  end

  def curl(curl, *arguments, input: "")
    output, status = Open3.capture2(curl, "-s", "-S", "-m", PATIENCE.to_s, *arguments, stdin_data: input)

    assert_predicate status, :success?
    output
  end

  def test_requests_run_at_the_same_time
    arrived = Thread::Queue.new
    all = Thread::Queue.new
    app = lambda do |_env|
      arrived << true
      all.close if arrived.size == 10
      all.pop
      [200, {}, ["met"]]
    end
    serving(app, threads: 10) do
      threads = Array.new(10) { Thread.new { exchange(LAST) } }

      threads.each { |thread| assert_operator thread.value, :end_with?, "met" }
    end
  end

  def test_pipelined_requests_are_answered_in_order_and_with_one_application_at_a_time
    running = 0
    app = lambda do |env|
      running += 1

      assert_equal 1, running
      sleep(0.001)
      running -= 1
      [200, {}, ["<#{env["PATH_INFO"]}>"]]
    end
    serving(app) do
      answers = exchange((1..30).map { |number| GET.sub("/", "/#{number}") }.join, LAST.sub("/", "/31"))

      assert_equal((1..31).map { |number| "</#{number}>" }, answers.scan(%r{</\d+>}))
    end
    assert_empty errors.string
  end

  def test_a_client_that_half_closes_gets_its_response
    serving(text) do
      socket = connect
      socket.write(GET)
      socket.close_write

      assert_operator read_all(socket), :end_with?, "hello"
      socket.close
    end
  end

  def test_a_refused_client_gets_the_response_and_no_reset_while_it_still_sends
    serving(echo, body_limit: 1_000) do
      socket = connect
      socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
      10.times { socket.write("x" * 100_000) }

      assert_operator read_all(socket), :start_with?, "HTTP/1.1 413 "
      socket.close
    end
  end

  def test_hostile_bytes_are_answered_and_the_server_continues
    serving(text) do
      ["\0" * 1_000, "GET / HTTP/1.1\n\n", "\x16\x03\x01\x02\x00", "A" * 100_000,
       "GET / HTTP/1.1\r\nHost: a\r\n x\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "\r\n\r\n\r\n",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"].each do |bytes|
        assert_match(%r{\AHTTP/1\.1 (400|501) }, exchange(bytes), bytes[0, 40].inspect)
      end
      assert_equal "hello", get("/").body
    end
  end

  def test_a_slow_head_is_answered_with_a_timeout_however_often_a_byte_comes
    serving(text, head_timeout: 1) do
      socket = connect
      socket.write("G") # without which the connection would end without words
      writer = Thread.new do
        loop { socket.write("G") && sleep(0.02) }
      rescue SystemCallError
        nil
      end

      assert_operator read_all(socket), :start_with?, "HTTP/1.1 408 "
      writer.kill.join
      socket.close
    end
  end

  def test_an_idle_connection_is_closed_without_words
    serving(text, idle_timeout: 0.2) do
      assert_equal "", exchange
      socket = connect
      socket.write(GET)

      assert_operator read_answer(socket), :end_with?, "hello"
      assert_equal "", read_all(socket)
      socket.close
    end
  end

  def test_a_slow_body_is_answered_with_a_timeout
    serving(echo, body_grace: 0.2) do
      assert_operator exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"), :start_with?,
                      "HTTP/1.1 408 "
    end
  end

  def test_a_client_that_does_not_read_is_cut_off
    gone = Thread::Queue.new
    app = lambda do |env|
      env["rack.response_finished"] << ->(_, _, _, error) { gone << error }
      [200, {}, ["x" * 60_000_000]]
    end
    serving(app, write_timeout: 0.001) do
      socket = connect
      socket.write(GET)

      assert_kind_of Heddle::ClientGoneError, gone.pop(timeout: PATIENCE)
      socket.close
    end

    assert_empty errors.string
  end

  def test_a_stream_reaches_the_client_as_it_is_written
    lines = Thread::Queue.new
    app = lambda do |_env|
      [200, {}, lambda { |stream|
        while (line = lines.pop)
          stream << line
        end
        stream.close
      }]
    end
    serving(app) do
      socket = connect
      socket.write(LAST)

      assert_match(/200 OK/, Timeout.timeout(PATIENCE) { socket.gets("\r\n\r\n") })
      3.times do |number|
        lines << "line #{number}\n"

        assert_equal "7\r\nline #{number}\n\r\n", Timeout.timeout(PATIENCE) { socket.read(12) }
      end
      lines.close

      assert_equal "0\r\n\r\n", read_all(socket)
      socket.close
    end
  end

  def test_tasks_of_a_request_may_write_to_its_stream_at_the_same_time
    skip "a request in a thread has no loop for Heddle.async" if ENV["HEDDLE_MODE"] == "thread"

    large = "x" * 3_000_000
    app = lambda do |_env|
      [200, {}, lambda { |stream|
        3.times.map { |number| Heddle.async { stream.write("<#{number}", large, "#{number}>") } }.each(&:wait)
        Thread.new { stream.write("<3", large, "3>") && stream.close }.join
      }]
    end
    serving(app) do
      assert_equal %w[0 1 2 3], get("/").body.delete("x").scan(/<(\d)\1>/).flatten.sort
    end
    assert_empty errors.string
  end

  def test_a_task_that_fails_is_its_requests_failure_and_not_the_servers
    skip "a request in a thread has no loop for Heddle.async" if ENV["HEDDLE_MODE"] == "thread"

    app = lambda do |env|
      next [200, {}, ["fine"]] if env["PATH_INFO"] == "/"

      Heddle.async { raise "in a task" }
      sleep
    end
    serving(app) do
      assert_equal "500", get("/fails").code
      assert_equal "fine", get("/").body
    end
    assert_match(/RuntimeError: in a task/, errors.string)
  end

  def test_a_websocket_like_upgrade_talks_in_both_directions
    shout = lambda do |stream|
      loop { stream.write(stream.readpartial(100).upcase) }
    rescue EOFError
      stream.close
    end
    app = ->(env) { [101, { "rack.protocol" => env["rack.protocol"].first }, shout] }
    serving(app, lint: false) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\nearly ")

      assert_match(/\AHTTP.1.1 101 .*upgrade: shout/m, Timeout.timeout(PATIENCE) { socket.gets("\r\n\r\n") })
      assert_equal "EARLY ", Timeout.timeout(PATIENCE) { socket.readpartial(100) }
      socket.write("abc")

      assert_equal "ABC", Timeout.timeout(PATIENCE) { socket.readpartial(100) }
      socket.close_write

      assert_equal "", read_all(socket)
      socket.close
    end
  end

  def test_a_hijacked_socket_belongs_to_the_application_and_its_threads
    app = lambda do |env|
      socket = env["rack.hijack"].call
      Thread.new { socket.write("raw: #{socket.readpartial(100)}") && socket.close }
      [-1, {}, []]
    end

    serving(app, lint: false) { assert_equal "raw: ahead", exchange("#{GET}ahead") }
  end

  def test_a_unix_socket_with_its_mode_is_served_and_removed
    Dir.mktmpdir do |folder|
      path = File.join(folder, "heddle.sock")
      configuration = Heddle::Server::Configuration.new(bind: ["unix:#{path}?mode=600"])
      server = Heddle::Server.new(configuration, log: Heddle::Server::Log.new(output: log = StringIO.new))

      assert_equal ["unix:#{path}"], server.open
      assert_equal "600", (File.stat(path).mode & 0o777).to_s(8)
      started = Thread::Queue.new
      thread = Thread.new { server.run(text) { started << true } }
      started.pop(timeout: PATIENCE)
      socket = UNIXSocket.new(path)
      socket.write(LAST)

      assert_operator read_all(socket), :end_with?, "hello"
      server.stop

      assert thread.join(PATIENCE)
      refute_path_exists path
      assert_match(%r{ 200 GET / 5 bytes in }, log.string)
    end
  end

  def test_an_application_that_fails_is_logged_with_its_request
    serving(->(_env) { raise "boom" }) do
      assert_equal "500", get("/broken?x").code
    end
    assert_match(%r{error in GET /broken\?x: RuntimeError: boom\n    from .*server_test.rb}, errors.string)
    refute_includes errors.string, "lib/heddle/"
    assert_match(%r{^\d\d:\d\d:\d\d 500 GET /broken\?x }, output.string)
  end
end
