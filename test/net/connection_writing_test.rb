# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# Output is sent complete and in order, even if its strings change meanwhile.
module ConnectionWritingTests
  # More than any socket buffer takes.
  LARGE = 20_000_000

  def test_writes_strings_and_lists_of_strings
    written = []
    handler = lambda do |connection|
      connection.readpartial(1)
      written << connection.write("a") << connection.write(["b", "", "c" * 3]) << connection.write([])
      written << connection.write("") << connection.write(Array.new(3000) { |i| "#{i} " })
    end
    many = Array.new(3000) { |i| "#{i} " }.join
    serve(handler) do |server|
      client = server.connect
      client.write("x")

      assert_equal "abccc#{many}", client.read
    end
    assert_equal [1, 4, 0, 0, many.bytesize], written
  end

  def test_writes_nothing_but_strings
    errors = []
    handler = lambda do |connection|
      errors << error_of(TypeError) { connection.write(["fine", :symbol]) } << error_of(TypeError) do
        connection.write(1)
      end
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      assert_raises(Errno::ECONNRESET) { client.read } if client.wait_readable(Scheduled::LIMIT)
    end
    assert_equal 2, errors.compact.size
  end

  def test_a_slow_peer_gets_everything
    body = Random.new(1).bytes(LARGE)
    serve(writing(body.dup)) do |server|
      client = server.connect
      client.write("x")
      got = +""
      while (piece = client.read(1_000_000))
        got << piece
        sleep 0.001
      end

      assert_equal body.hash, got.hash
    end
  end

  def test_a_list_with_a_slow_peer
    list = Array.new(5000) { |i| i.to_s * (i % 2000) }
    expected = list.join
    serve(writing(list)) do |server|
      client = server.connect
      client.write("x")
      sleep 0.01

      assert_equal expected.hash, client.read.hash
    end
  end

  def test_changes_to_a_string_after_write_are_not_sent
    list = [+"a" * 10, +"b" * LARGE, +"c" * LARGE, +"d" * 10, +"e"]
    expected = list.join
    serve(writing(list)) do |server|
      client = server.connect
      client.write("x")
      until_true { client.wait_readable(0) }
      list.each(&:clear)
      list.clear
      GC.start

      assert_equal expected.hash, client.read.hash
    end
  end

  def test_no_progress_in_time_is_an_error
    errors = []
    handler = lambda do |connection|
      started = now
      errors << error_of(IO::TimeoutError) { connection.write("x" * LARGE, timeout: 0.05) } << (now - started)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      until_true { errors.size == 2 }
    end
    assert_match(/took nothing/, errors[0].message)
    assert_operator errors[1], :>=, 0.05
  end

  def test_slow_progress_is_progress
    written = nil
    handler = lambda do |connection|
      connection.readpartial(1)
      written = connection.write("x" * LARGE, timeout: 1)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      started = now
      while (piece = client.read(1_200_000))
        sleep 0.1 if piece.bytesize == 1_200_000 && now - started < 1.3
      end
      until_true { written }

      assert_operator now - started, :>, 1.2
    end
    assert_equal LARGE, written
  end

  def test_writing_to_a_peer_that_is_gone_raises_and_sends_no_signal
    error = nil
    handler = lambda do |connection|
      connection.readpartial(10)
      connection.readpartial(10)
      error = error_of(SystemCallError) { loop { connection.write("x" * 1000) } }
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      client.close
      until_true { error }
    end
    assert_includes [Errno::ECONNRESET, Errno::EPIPE], error.class
  end

  private

  def writing(what)
    lambda do |connection|
      connection.readpartial(1)
      connection.write(what)
    end
  end
end
Heddle::TestHelpers.with_each_event_set(ConnectionWritingTests)
