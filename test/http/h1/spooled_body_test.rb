# frozen_string_literal: true

# test: sanitize

require "heddle/rack"
require "tmpdir"
require_relative "../support/http_case"

# Bodies that are larger than body_buffer: complete, and in a file, before the application is called.
class H1SpooledBodyTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  BODY = Array.new(37_500) { |number| number.to_s.rjust(8) }.join.b.freeze
  LARGE_BUFFER = 262_144 # bytes that are collected at most before they are written; a body that fits needs no file
  LARGE_BUFFERS = 16_777_216 # bytes that bodies above body_buffer have in memory, all of the process together
  CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"

  # @return [Array(Array, String)] what the server's block saw of each request with a body, and the client's output
  def upload(*pieces, **)
    seen = []
    output = serve(*pieces, open: true, **) do |exchange|
      seen << [exchange.received?, digest(read_all(exchange.body))] if exchange.body
      reply(exchange, exchange.target)
    end
    [seen, output]
  end

  # What a failure can show.
  def digest(bytes) = [bytes.bytesize, bytes.hash]

  # @return [Array<String>] files without a name that this process has open
  def open_files
    Dir["/proc/self/fd/*"].filter_map do |path|
      name = File.readlink(path)
      name if name.end_with?(" (deleted)") && !name.start_with?("/memfd:", "/dev/")
    rescue SystemCallError
      nil
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def chunks(bytes, size) = cut(bytes, size).map { |chunk| "#{chunk.bytesize.to_s(16)}\r\n#{chunk}\r\n" }

  def cut(bytes, size) = (0...bytes.bytesize).step(size).map { |start| bytes.byteslice(start, size) }

  # The writer closes files on its own thread.
  def assert_no_files # rubocop:disable Minitest/TestMethodName
    limit = now + 60
    sleep 0.001 until (conversation.engine.body_disk_used == 0 && open_files.empty?) || now > limit

    assert_equal [0, []], [conversation.engine.body_disk_used, open_files]
  end

  def test_a_large_body_is_complete_when_the_block_is_called
    seen, output = upload(post(BODY.bytesize), *cut(BODY, 70_001), GET)

    assert_equal [[[true, digest(BODY)]], [200, 200], true], [seen, statuses(output), kept?]
    assert_equal 1, conversation.engine.spooled
  end

  def test_a_chunked_body_moves_to_a_file_when_it_becomes_large
    [1, 100, 65_536, 65_537, 300_000].each do |size|
      bytes = size == 1 ? BODY[0, 70_000] : BODY
      seen, output = upload(CHUNKED, *cut(chunks(bytes, size).join, 30_011), "0\r\n\r\n", GET,
                            chunk_overhead_limit: 1 << 20)

      assert_equal [[[true, digest(bytes)]], [200, 200], true], [seen, statuses(output), kept?]
    end
  end

  def test_sizes_around_the_buffers_ends
    [99, 100, 101, 400, 401, 65_536, 65_537, 131_072, 131_073, LARGE_BUFFER, LARGE_BUFFER + 1].each do |size|
      assert_equal size > 400 ? [1, 1] : [0, 0], files_of(size, body_buffer: 100)
      assert_equal size > LARGE_BUFFER ? [1, 1] : [0, 0], files_of(size)
    end
  end

  # @return [Array<Integer>] how many files a body has needed: one of known length, and one in chunks
  def files_of(size, **)
    bytes = BODY[0, size]
    seen, = upload(post(size, bytes), **)
    files = [conversation.engine.spooled]
    in_chunks, = upload(CHUNKED, *chunks(bytes, 50_000), "0\r\n\r\n", **)

    assert_equal [[[true, digest(bytes)]]] * 2, [seen, in_chunks]
    files << conversation.engine.spooled
  end

  def test_bodies_in_memory_have_a_limit_beyond_which_there_are_files
    converse(->(exchange) { reply(exchange, read_all(exchange.body).bytesize.to_s) }) do |conversation|
      waiting = Array.new(LARGE_BUFFERS / LARGE_BUFFER) { begin_large_body(conversation) }
      conversation.await { conversation.engine.requests == waiting.size }

      assert_equal 2, files_of_two(conversation)
      waiting.each(&:close)
      conversation.await { conversation.sockets.connections == 1 }

      assert_equal 2, files_of_two(conversation), "no more than before"
    end
  end

  # @return [Integer] how many files there were, after one more body of known length and one in chunks
  def files_of_two(conversation)
    bytes = BODY[0, 65_537]
    before = bodies(conversation.output).size
    conversation.say(post(bytes.bytesize, bytes), CHUNKED, *chunks(bytes, 50_000), "0\r\n\r\n")
    conversation.await { bodies(conversation.output).size == before + 2 }

    assert_equal %w[65537 65537], bodies(conversation.output).last(2)
    conversation.engine.spooled
  end

  # @return [UNIXSocket] a client who has sent the head of a body that fits into memory
  def begin_large_body(conversation)
    mine, other = UNIXSocket.pair
    conversation.sockets.adopt(mine)
    mine.close
    other.write(post(LARGE_BUFFER))
    other
  end

  def test_the_application_may_keep_bodies_and_they_have_no_buffers
    assert_no_buffers post(BODY.bytesize, BODY)
  end

  def test_a_buffer_for_the_last_chunk_is_freed_before_the_application_is_called
    assert_no_buffers CHUNKED, *chunks(BODY[0, LARGE_BUFFER + 1], 50_000), "0\r\n\r\n"
  end

  # After more such bodies than all buffers together would have room for, another one still fits into memory.
  def assert_no_buffers(*pieces)
    kept = []
    answer = ->(exchange) { (kept << exchange.take_body) && reply(exchange, "") }
    count = (LARGE_BUFFERS / LARGE_BUFFER) + 1
    converse(answer) do |conversation|
      count.times { conversation.say(*pieces) }
      conversation.settle
      conversation.say(post(LARGE_BUFFER, BODY[0, LARGE_BUFFER]))
      conversation.settle

      assert_equal [count + 1, count], [kept.size, conversation.engine.spooled]
    end
  end

  def test_a_body_is_written_to_a_file_at_once_with_a_buffer_of_zero
    seen, = upload(post(1, "x"), "#{CHUNKED}0\r\n\r\n", body_buffer: 0)

    assert_equal [[true, digest("x".b)], [true, digest("".b)]], seen
    assert_equal 1, conversation.engine.spooled
  end

  def test_requests_behind_a_large_body_are_answered_in_their_order
    pipelined = [get("/1"), post(BODY.bytesize, BODY), get("/3"), CHUNKED, *chunks(BODY, 9_999), "0\r\n\r\n",
                 get("/5")]
    seen, output = upload(pipelined.join)

    assert_equal [[[true, digest(BODY)]] * 2, %w[/1 / /3 / /5]], [seen, bodies(output)]
  end

  def test_a_slow_upload_costs_no_fiber_and_no_object
    converse(->(exchange) { reply(exchange, read_all(exchange.body).bytesize.to_s) }) do |conversation|
      conversation.say(post(200_000))
      19.times do
        conversation.say("x" * 10_000)

        assert_equal [0, []], [conversation.sockets.running, conversation.sockets.serving]
      end
      conversation.say("x" * 10_000)
      conversation.settle

      assert_equal %w[200000], bodies(conversation.output)
    end
  end

  def test_the_file_is_closed_with_the_response_whether_or_not_it_was_read
    [true, false].each do |reads|
      answer = ->(exchange) { reply(exchange, reads ? read_all(exchange.body).bytesize.to_s : "unread") }
      converse(answer) do |conversation|
        conversation.say(post(BODY.bytesize, BODY))
        conversation.settle

        assert_equal [200], statuses(conversation.output)
        assert_no_files
        assert_predicate conversation, :open?
      end
    end
  end

  def test_the_file_is_closed_when_the_client_leaves
    converse(->(_) { flunk }, kind: :tcp) do |conversation|
      conversation.say(post(BODY.bytesize, BODY[0, LARGE_BUFFER + 1]))
      conversation.await { conversation.engine.body_disk_used.positive? }
      conversation.vanish
      conversation.await { !conversation.open? }
      assert_no_files
    end
  end

  def test_a_body_that_ends_too_early_is_refused_and_never_shorter
    [post(BODY.bytesize, BODY[0, 200_000]), CHUNKED + chunks(BODY, 1_000).join].each do |request|
      output = serve(request) { flunk }

      assert_equal [[400], [[400, "the request's body ended before it was complete"]]],
                   [statuses(output), conversation.rejections]
      assert_no_files
    end
  end

  def test_a_large_body_slower_than_the_rate_is_refused
    [post(BODY.bytesize, BODY[0, 100_000]), CHUNKED + chunks(BODY[0, 100_000], 1_000).join].each do |request|
      converse(->(_) { flunk }, body_grace: 0.1, body_rate: 10_000_000) do |conversation|
        conversation.say(request)
        conversation.await_end
      end

      assert_equal [[408, "the body came slower than 10000000 bytes a second, or paused for 60 s"]],
                   conversation.rejections
    end
  end

  def test_malformed_chunks_after_the_spooled_part_are_rejected
    output = serve(CHUNKED, chunks(BODY, 10_000).join, "x\r\n", open: true) { flunk }

    assert_equal [400], statuses(output)
  end

  def test_a_body_above_its_limit_is_too_large
    assert_equal([413], statuses(serve(post(200_001), body_limit: 200_000) { flunk }))
    assert_equal([413], statuses(serve(CHUNKED, *chunks(BODY, 10_000), body_limit: 200_000, open: true) { flunk }))
  end

  def test_a_body_above_what_all_may_have_is_too_large
    assert_equal([413], statuses(serve(post(200_001), body_disk_limit: 200_000) { flunk }))
    assert_equal([413], statuses(serve(CHUNKED, *chunks(BODY, 10_000), body_disk_limit: 200_000, open: true) { flunk }))
    assert_includes conversation.output, "the body is larger than 200000 bytes, the limit"
  end

  # Two clients in one loop. The first one has sent the most of its body.
  def test_body_is_put_off_while_others_leave_no_room
    converse(->(_) { flunk }, body_disk_limit: 400_000) do |conversation|
      conversation.say(post(BODY.bytesize, BODY[0..-2]))
      conversation.await { conversation.engine.body_disk_used == BODY.bytesize }
      mine, other = UNIXSocket.pair
      conversation.sockets.adopt(mine)
      mine.close
      other.write(post(BODY.bytesize))
      answer = other.readpartial(10_000)

      assert_match(%r{\AHTTP/1\.1 503 .*\r\nretry-after: 1\r\n}m, answer)
      assert_includes answer, "the limit of 400000 bytes for all request bodies on disk leaves no room"
      other.close
    end
  end

  def test_a_folder_that_cannot_be_written_to_is_the_servers_fault
    Dir.mktmpdir do |folder|
      output = serve(post(BODY.bytesize), *cut(BODY, 50_000), GET,
                     body_folder: File.join(folder, "gone"), open: true) { flunk }

      assert_match(%r{\AHTTP/1\.1 503 .*\r\nretry-after: 1\r\n}m, output)
      assert_includes output, "could not write the body to its disk: No such file"
      assert_equal [503], conversation.rejections.map(&:first)
    end
  end

  def test_a_client_that_expects_continue_gets_it_before_the_block_is_called
    [post(5), post(BODY.bytesize), CHUNKED].each do |head|
      called = false
      answer = ->(exchange) { (called = true) && reply(exchange, read_all(exchange.body).bytesize.to_s) }
      converse(answer) do |conversation|
        conversation.say(head.sub("Host: a\r\n", "Host: a\r\nExpect: 100-continue\r\n"))
        conversation.await { conversation.output == CONTINUE }

        refute called
        bytes = head == post(5) ? "12345" : BODY
        conversation.say(head == CHUNKED ? "#{chunks(bytes, 10_000).join}0\r\n\r\n" : bytes)
        conversation.settle

        assert_equal [100, 200], statuses(conversation.output)
        assert_equal bytes.bytesize.to_s, bodies(conversation.output).last
      end
    end
  end

  def test_no_continue_to_a_client_that_has_begun_to_send
    output = serve(post(5, "a").sub("Host: a\r\n", "Host: a\r\nExpect: 100-continue\r\n"), "bcde", open: true)

    assert_equal [200], statuses(output)
  end

  def test_a_rejected_request_gets_no_100_continue
    expect = "Host: a\r\nExpect: 100-continue\r\n"
    too_large = post(BODY.bytesize).sub("Host: a\r\n", expect)

    assert_equal([413], statuses(serve(too_large, body_limit: 200_000) { flunk }))
    assert_equal([413], statuses(serve(too_large, body_disk_limit: 200_000) { flunk }))
    assert_equal([417], statuses(serve(too_large.sub("100-continue", "200-ok")) { flunk }))
  end

  def test_only_the_paths_that_are_named_are_streamed
    streamed = lambda do |path|
      seen = nil
      converse(lambda { |exchange|
        seen = exchange.received?
        reply(exchange, read_all(exchange.body).bytesize.to_s)
      }, stream_bodies: %w[/rpc /live/]) do |conversation|
        conversation.say("POST #{path} HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", "x" * 70_000)
        conversation.settle
      end
      !seen
    end

    assert_equal [true] * 5, %w[/rpc /rpc/a /rpc?b /live/ /live/x].map(&streamed)
    assert_equal [false] * 5, %w[/ /rpcs /rp /live /a/rpc].map(&streamed)
  end

  def test_a_body_of_a_client_that_left_is_freed_with_the_sockets
    converse(->(_) { flunk }) do |conversation|
      conversation.say(post(BODY.bytesize, BODY[0, 100_000]))
    end
    assert_no_files
  end
end

# The same where there is no epoll.
class H1SpooledBodyWithSelectorSetTest < H1SpooledBodyTest
  def set = :selector
end
