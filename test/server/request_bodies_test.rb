# frozen_string_literal: true

# test: each mode

require "test_helper"
require "tmpdir"
require_relative "server_helpers"

# What a whole server does with bodies that are larger than body_buffer.
class RequestBodiesTest < Minitest::Test
  include ServerHelpers

  BODY = Array.new(50_000) { |number| number.to_s.rjust(8) }.join.b.freeze

  SENT_FIRST = 300_000 # bytes: more than the largest buffer (256 KiB), so a part is in the file

  def post(length, path: "/", more: "") = "POST #{path} HTTP/1.1\r\nHost: a\r\n#{more}Content-Length: #{length}\r\n\r\n"

  # Counts its calls and says how much of the body it has got.
  def counting
    @calls = 0
    lambda do |env|
      @calls += 1
      [200, {}, [env["rack.input"].read.bytesize.to_s]]
    end
  end

  # @return [TCPSocket] whose request has begun to fill its file
  def begin_upload
    socket = connect
    socket.write(post(BODY.bytesize))
    socket.write(BODY[0, SENT_FIRST])
    wait_until { disk_used.positive? }
    socket
  end

  def disk_used = server.engines.first&.body_disk_used.to_i

  def wait_until
    limit = now + PATIENCE
    until yield
      flunk "not within #{PATIENCE} s" if now > limit
      sleep 0.001
    end
  end

  def test_a_body_is_whole_at_once_and_read_in_place
    held = Thread::Queue.new
    app = lambda do |env|
      input = env["rack.input"]
      held << input.read(100_000).bytesize
      [200, {}, [(100_000 + input.read.bytesize).to_s, input.gets.inspect]]
    end
    serving(app) do
      before = server.engines.first.spooled

      answer = exchange(post(BODY.bytesize, more: "Connection: close\r\n"), BODY)

      assert_operator answer, :end_with?, "\r\n400000nil"
      wait_until { disk_used.zero? }

      assert_equal before + 1, server.engines.first.spooled
    end
  end

  def test_the_body_of_an_answered_request_leaves_its_room_to_the_next_one
    waiting = Thread::Queue.new
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { waiting.pop }
      [200, {}, [env["rack.input"].read.bytesize.to_s]]
    end
    serving(app, body_disk_limit: BODY.bytesize) do
      socket = connect
      socket.write(post(BODY.bytesize), BODY)
      first = read_answer(socket)
      socket.write(post(BODY.bytesize), BODY[0, SENT_FIRST])
      wait_until { disk_used.positive? || socket.wait_readable(0) }
      waiting.close
      socket.write(BODY[SENT_FIRST..])

      [first, read_answer(socket)].each { |answer| assert_operator answer, :start_with?, "HTTP/1.1 200 " }
    end
  ensure
    waiting.close
  end

  def test_an_upload_continues_while_the_server_drains
    start(counting)
    socket = begin_upload
    server.stop
    wait_until { server.engines.first.draining? }
    socket.write(BODY[SENT_FIRST..])
    answer = read_all(socket)

    assert_operator answer, :end_with?, "\r\n400000"
    assert_includes answer, "connection: close\r\n"
    assert wait_for_end, "every request was answered"
  end

  def test_an_upload_that_does_not_end_in_time_ends_with_the_server
    start(counting, stop_timeout: 0.2)
    socket = begin_upload
    server.stop
    wait_for_end

    assert_equal ["", 0], [read_all(socket), @calls]
  end

  def test_an_upload_that_its_client_cuts_short_is_logged_and_never_reaches_the_application
    serving(counting) do
      socket = begin_upload
      socket.close_write

      assert_operator read_all(socket), :start_with?, "HTTP/1.1 400 "
      wait_until { disk_used.zero? }
    end

    assert_match(/400 .*the request's body ended before it was complete/, output.string)
    assert_equal 0, @calls
  end

  def test_a_disk_that_cannot_be_written_to_is_logged
    serving_with_folder(counting) do |folder|
      Dir.rmdir(folder)

      assert_operator exchange(post(BODY.bytesize), BODY), :start_with?, "HTTP/1.1 503 "
      assert_operator exchange(post(2, more: "Connection: close\r\n"), "ab"), :end_with?, "\r\n2"
    end

    assert_match(/503 .*could not write the body to its disk: No such file or directory/, output.string)
  end

  # Applications that log their requests themselves serve without lines for requests.
  def test_without_lines_for_requests_the_log_says_once_that_a_disk_cannot_be_written_to
    serving_with_folder(counting, access_log: false) do |folder|
      Dir.rmdir(folder)
      2.times { assert_operator exchange(post(BODY.bytesize), BODY), :start_with?, "HTTP/1.1 503 " }
    end

    assert_equal 1, output.string.scan("rejecting requests with 503: the server could not write the body").size
  end

  # Serves with a temporary folder of its own.
  def serving_with_folder(app, **)
    before = ENV.fetch("TMPDIR", nil)
    ENV["TMPDIR"] = folder = Dir.mktmpdir
    serving(app, **) { yield folder }
  ensure
    ENV["TMPDIR"] = before
  end

  def test_paths_to_stream_begin_with_a_slash
    error = assert_raises(Heddle::Server::ConfigurationError) { start(counting, stream_bodies: %w[/a uploads]) }

    assert_equal 'stream_bodies (default) must be all, off, or paths that begin with /, but is "uploads"', error.message
  end

  # As with any file that is open: the child is a copy of the application.
  def test_a_child_process_reads_the_body_of_the_request_that_forked_it
    app = lambda do |env|
      reader, writer = IO.pipe
      child = fork do
        writer.write(env["rack.input"].read.bytesize)
        exit!(0)
      end
      writer.close
      Process.wait(child)
      [200, {}, [reader.read, " ", env["rack.input"].read.bytesize.to_s]]
    end
    serving(app, lint: false) do
      answer = exchange(post(BODY.bytesize, more: "Connection: close\r\n"), BODY)

      assert_operator answer, :end_with?, "\r\n400000 400000"
    end
  end

  # What others upload is not the child's to keep.
  def test_a_child_process_keeps_no_file_of_an_upload_under_way
    forked = Thread::Queue.new
    app = lambda do |_env|
      reader, writer = IO.pipe
      child = fork do
        writer.write(Dir["/proc/self/fd/*"].filter_map { |path| File.readlink(path) rescue nil }.join("\n"))
        exit!(0)
      end
      writer.close
      Process.wait(child)
      forked << reader.read
      [200, {}, []]
    end
    serving(app) do
      socket = begin_upload
      exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

      refute_match(%r{^#{Dir.tmpdir}/.*\(deleted\)}o, forked.pop)
      socket.write(BODY[SENT_FIRST..])
      assert_operator read_answer(socket), :start_with?, "HTTP/1.1 200 "
    end
  end
end
