# frozen_string_literal: true

# test: each mode

require "test_helper"
require_relative "rack_helpers"

class StreamingTest < Minitest::Test
  include RackHelpers

  def streaming(status = 200, headers = {}, &body) = ->(_env) { [status, headers.dup, body] }

  def test_a_streaming_body_writes_as_it_goes
    writes = []
    app = streaming do |stream|
      stream << "a" << "b"
      await_output("1\r\nb\r\n")
      writes << conversation.output.dup

      assert_equal 3, stream.write("cd", "e")
      assert_equal 0, stream.write("")
      stream.flush
      stream.close
    end
    _, headers, content = parts(serve(app))

    assert_equal ["chunked", ["abcde", ""]], [headers["transfer-encoding"], unchunk(content)]
    assert_operator writes.first, :end_with?, "1\r\nb\r\n"
    assert_predicate self, :kept?
    assert_empty log.failures
  end

  def test_the_strings_of_one_write_stay_together_while_another_task_writes
    app = streaming do |stream|
      written = Thread::Queue.new
      write = -> { written << stream.write("d") }
      late = Object.new
      late.define_singleton_method(:to_s) do
        Fiber.scheduler ? Fiber.schedule(&write) : Thread.new(&write)
        "c"
      end
      stream.write("a")
      stream.write("b", late)
      written.pop
      stream.close
    end

    assert_equal "abcd", unchunk(parts(serve(app, lint: false))[2])[0]
    assert_empty log.failures
  end

  def test_the_head_leaves_before_the_first_write
    seen = nil
    app = streaming do |stream|
      await_output("200 OK")
      seen = conversation.output.dup
      stream.close
    end
    serve(app)

    assert_operator seen, :end_with?, "\r\n\r\n"

    assert_empty log.failures
  end

  def test_both_directions_at_once
    app = lambda do |env|
      [200, {}, lambda { |stream|
        conversation.client.write("2\r\nab\r\n")
        stream.write(stream.readpartial(10))
        await_output("2\r\nab\r\n")
        conversation.client.write("2\r\ncd\r\n0\r\n\r\n")
        stream.write(stream.read)

        assert_nil stream.read(1)
        env["rack.input"].close
        stream.close
      }]
    end
    output = serve(app, CHUNKED, lint: false, body_pause: 0.001, stream_bodies: true)

    assert_equal "abcd", unchunk(parts(output)[2])[0]
    assert_empty log.failures
  end

  def test_a_stream_with_a_length_and_one_to_http_one_zero
    body = ->(stream) { stream.write("abc") && stream.close }

    assert_equal "abc", parts(serve(streaming(200, { "content-length" => "3" }, &body)))[2]
    assert_equal "abc", parts(serve(streaming(&body), "GET / HTTP/1.0\r\n\r\n"))[2]
    refute_predicate self, :kept?
  end

  def test_closing_one_direction_and_then_the_other
    states = []
    app = streaming do |stream|
      states << stream.closed?
      stream.close_write
      states << stream.closed?
      assert_raises(IOError) { stream.write("late") }
      stream.close_read
      assert_raises(IOError) { stream.read }
      states << stream.closed?
      stream.close
    end
    serve(app, lint: false)

    assert_equal [false, false, true], states
    assert_empty log.failures
    assert_predicate self, :kept?
  end

  def test_a_streaming_body_that_raises_closes_without_the_last_chunk
    output = serve(streaming { |stream| stream.write("a") && raise("no") })

    assert_operator output, :end_with?, "1\r\na\r\n"
    refute_predicate self, :kept?
    assert_equal ["no"], log.failures.map(&:message)
  end

  def test_writing_to_a_client_that_left_raises
    seen = nil
    app = streaming do |stream|
      conversation.vanish
      loop { stream.write("a") && (Fiber.scheduler ? Fiber.scheduler.yield : Thread.pass) }
    rescue Heddle::ClientGoneError => e
      seen = e
      raise
    end
    converse_with(app) { |conversation| conversation.say(GET) && conversation.await { !conversation.open? } }

    assert_kind_of Heddle::ClientGoneError, seen
    assert_empty log.failures
  end

  def test_an_upgrade_by_rack_protocol_makes_the_stream_the_connection
    app = lambda do |env|
      assert_equal ["echo"], env["rack.protocol"]
      [200, { "rack.protocol" => "echo" }, lambda { |stream|
        while (data = stream.read(2))
          stream.write(data.upcase)
        end
        stream.close
      }]
    end
    output = serve(app, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\nab", "cd", "e",
                   open: false)
    head, content = output.split("\r\n\r\n", 2)

    assert_operator head, :start_with?, "HTTP/1.1 101 Switching Protocols\r\n"
    assert_includes head, "upgrade: echo"
    assert_equal "ABCDE", content
    assert_predicate conversation, :ended?
    assert_empty log.failures
  end

  def test_a_full_hijack_returns_the_socket_with_unread_input
    app = lambda do |env|
      socket = env["rack.hijack"].call
      assert_same socket, env["rack.hijack"].call unless env["rack.lint"]
      socket.write("raw #{socket.readpartial(100)}")
      socket.close
      [200, { "x" => "ignored" }, ["ignored"]]
    end
    assert_equal "raw ahead", serve(app, "GET / HTTP/1.1\r\nHost: a\r\n\r\nahead")
    assert_empty log.failures
  end

  def test_a_hijacked_connection_is_the_applications_even_when_it_raises
    socket = nil
    app = ->(env) { (socket = env["rack.hijack"].call) && raise("no") }
    output = converse_with(app, lint: false) do |conversation|
      conversation.say(GET)
      conversation.settle
      socket.write("mine")
      await_output("mine")
      socket.close
      conversation.output
    end

    assert_equal ["mine", ["no"]], [output, log.failures.map(&:message)]
  end

  def test_no_full_hijack_after_the_response_has_begun
    app = ->(env) { [200, {}, ->(stream) { assert_raises(IOError) { env["rack.hijack"].call } && stream.close }] }
    serve(app, lint: false)

    assert_empty log.failures
  end

  def test_a_partial_hijack_gets_the_socket_after_the_head
    socket = nil
    app = ->(_env) { [200, { "content-type" => "text/x", "rack.hijack" => ->(given) { socket = given } }, []] }
    output = converse_with(app, lint: false) do |conversation|
      conversation.say(GET)
      conversation.settle
      socket.write("later")
      socket.close
      conversation.await_end
      conversation.output
    end
    _, headers, content = parts(output)

    assert_equal ["close", nil, "text/x"], headers.values_at("connection", "transfer-encoding", "content-type")
    assert_equal "later", content
    app = ->(_env) { [200, { "rack.hijack" => ->(stream) { stream.write("x") && stream.close } }, []] }

    assert_equal "x", parts(serve(app))[2]
    assert_empty log.failures
  end

  # Nobody else would close the socket, and its client would wait for the rest.
  def test_a_partial_hijack_that_raises_ends_the_connection
    app = lambda do |_env|
      [200, { "rack.hijack" => ->(stream) { stream.write("x") && raise("on purpose") } }, []]
    end
    output = converse_with(app, lint: false) do |conversation|
      conversation.say(GET)
      conversation.await_end
      conversation.output
    end

    assert_equal "x", parts(output)[2]
    assert_equal ["on purpose"], log.failures.map(&:message)
  end

  def test_a_partial_hijack_is_not_called_for_head
    called = false
    app = ->(_env) { [200, { "content-type" => "text/x", "rack.hijack" => ->(_) { called = true } }, []] }
    output = serve(app, HEAD, HEAD, lint: false)

    assert_equal ["HTTP/1.1 200 OK"] * 2, output.scan(%r{^HTTP/1.*(?=\r)})
    assert_equal 2, output.scan("content-type: text/x").size
    refute called
    assert_empty log.failures
  end

  # The head of such an answer is put together twice: other headers may need conversion, and the first of them all.
  def test_a_partial_hijack_beside_headers_that_are_no_strings
    hijack = ->(stream) { stream.write("x") && stream.close }
    [{ "age" => 5, "rack.hijack" => hijack }, { "rack.hijack" => hijack, "age" => 5 }].each do |headers|
      _, sent, content = parts(serve(->(_env) { [200, headers, ["not sent"]] }, lint: false))

      assert_equal %w[5 x], [sent["age"], content]
    end
    assert_empty log.failures
  end

  def test_a_partial_hijack_with_a_body_to_come_decodes_it
    app = lambda do |_env|
      [200, { "rack.hijack" => ->(stream) { stream.write(stream.read(70_000).bytesize.to_s) && stream.close } }, []]
    end
    output = serve(app, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", "x" * 70_000,
                   stream_bodies: true)

    assert_equal "70000", unchunk(parts(output)[2])[0]
    assert_empty log.failures
  end
end
