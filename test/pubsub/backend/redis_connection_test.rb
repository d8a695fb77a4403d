# frozen_string_literal: true

# test: long

require_relative "support/machines"
require_relative "support/private_redis"

# A real Redis gives messages their order.
class PubSubRedisConnectionTest < Minitest::Test
  include BackendPromises

  def setup
    @program = need_program("redis-server")
    skip "needs the gem redis-client: bin/setup" if Gem::Specification.find_all_by_name("redis-client").empty?
    require "redis-client"
    @backend_server = PrivateRedis.new(@program)
  end

  def url = @backend_server.url

  def redis = @redis ||= @backend_server.connect

  def cut_connections = @backend_server.cut_connections

  def crash = @backend_server.restart

  def test_a_crash_that_may_have_lost_messages_is_a_reset_with_a_new_epoch
    @backend_server.stop
    @backend_server = PrivateRedis.new(@program, PrivateRedis::FORGETFUL)
    one = machine
    before = %w[a b].map { |data| one.publish(data) }
    2.times { one.message }
    crash
    after = one.publish_after_crash("c")
    reset, position = one.message

    assert_nil reset
    refute_equal before.last[/\A[^:]+/], after[/\A[^:]+/]
    assert_equal after[/\A[^:]+/], position[/\A[^:]+/]
  end

  def test_a_machine_that_missed_more_than_is_stored_gets_a_reset
    one = machine
    first = one.publish("first")
    10.times { one.publish("x") }
    redis.call("XTRIM", "{heddle_pubsub}:stream", "MAXLEN", 3)
    later = machine("room", first)

    assert_nil later.message.first
  end

  def test_a_server_that_is_emptied_is_a_reset_with_a_new_epoch
    one = machine
    before = one.publish("a")
    one.message
    redis.call("FLUSHALL")
    after = one.publish("b")
    reset, position = one.message
    one.publish("c") # behind the reset, whatever that includes

    assert_nil reset
    refute_equal before[/\A[^:]+/], after[/\A[^:]+/]
    assert_equal after[/\A[^:]+/], position[/\A[^:]+/]
    assert_equal "c", one.messages_until("c").last.first
  end

  STREAM = "{heddle_pubsub}:stream"
  # What no entry of Heddle's looks like, behind the id that it is added with.
  FOREIGN = [%w[foo bar], ["\xff\x00", "\xfe".b], %w[e x t room d x], ["e", "\xff" * 12, "t", "room", "d", "x"],
             %w[e aaaaaaaaaaaa t room], %w[e aaaaaaaaaaaa t room d x]].freeze
  private_constant :STREAM, :FOREIGN

  def test_entries_of_another_program_are_skipped
    one = machine
    first = one.publish("a")
    FOREIGN.each.with_index(1) { |fields, i| redis.call("XADD", STREAM, "#{offset(first)}-#{i}", *fields) }
    last = one.publish("b")

    assert_equal [["a", first], ["b", last]], Array.new(2) { one.message }
    assert_equal ["b", last], machine("room", first).message
    assert_equal offset(first) + 1, offset(last)
  end

  # Redis refuses ids below an entry's, so the offsets continue after it: a gap for subscribers.
  def test_entries_with_higher_ids_are_a_reset_and_no_end
    one = machine
    first = one.publish("a")
    (FOREIGN + [%w[e aaaaaaaaaaaa t room d x]]).each { |fields| redis.call("XADD", STREAM, "*", *fields) }
    last = one.publish("b")
    messages = Array.new(2) { one.message }
    one.publish("c") # behind the reset, which would stand for it otherwise
    messages += one.messages_until("c")

    assert_operator offset(last), :>, offset(first) + 1
    assert_equal(["a", nil], messages.first(2).map(&:first))
    assert_in_order messages.map(&:last)
    assert_equal %w[c], machine("room", last).messages_until("c").map(&:first)
  end

  def test_an_id_that_none_can_follow_is_said
    one = machine
    one.publish("a")
    redis.call("XADD", STREAM, "18446744073709551615-0", "foo", "bar")
    what, reason = one.try("b")

    assert_equal "refused", what
    assert_match(/id 18446744073709551615-… to the stream \{heddle_pubsub\}:stream, .*: delete the stream/, reason)
    redis.call("DEL", STREAM)
    one.publish("c")

    assert_equal ["a", nil], Array.new(2) { one.message.first }
    one.publish("d") # behind the reset

    assert_equal "d", one.messages_until("d").last.first
  end

  def test_messages_that_another_program_has_deleted_are_a_reset
    first = machine.publish("a")
    last = @machines.first.publish("b")
    redis.call("XDEL", STREAM, "#{offset(last)}-0")

    assert_equal [nil, last], machine("room", first).message
  end

  def test_the_address_names_the_stream_of_one_of_several_applications
    Heddle::PubSub::Backend.new("#{url}?name=shop").publish("room", "x")

    assert_equal [1, 0], %w[{shop}:stream {heddle_pubsub}:stream].map { |key| redis.call("XLEN", key) }
  end

  def test_a_skipped_entry_is_logged_once
    notices = Thread::Queue.new
    Heddle::PubSub::History.open(1 << 20, 100, 300)
    backend = Heddle::PubSub::Backend.new(url)
    assert backend.follow(60, report: ->(name, **fields) { notices << Heddle::Events::TABLE.fetch(name).text(fields) })
    positions = Array.new(3) do |i|
      redis.call("XADD", STREAM, "#{i}-1", "foo", "bar")
      backend.publish("room", "x")
    end
    sleep 0.001 until Heddle::PubSub::History.position("room") == positions.last

    assert_match(%r{\Apub/sub skips the entry 0-1 of \{heddle_pubsub\}:stream in redis:.*another program has written},
                 notices.pop)
    assert_empty notices
  end

  def test_many_entries_of_another_program_before_a_message_are_no_loss
    backend = Heddle::PubSub::Backend.new(url)
    first = offset(backend.publish("room", "a"))
    200.times { |i| redis.call("XADD", STREAM, "#{first}-#{i + 1}", "foo", "bar") }
    backend.publish("room", "b")
    found = backend.connect.read(first, 1, 0.001, first + 1) { |_foreign| nil } # they take longer than that

    assert_equal ["b"], found.map(&:data)
  end

  # So no read ever finds nothing.
  # @return [Heddle::PubSub::Backend] before each read another program adds an entry to its stream
  def backend_beside_another_program
    server = @backend_server
    Heddle::PubSub::Backend.new(url).tap do |backend|
      backend.define_singleton_method(:connect) do
        other = server.connect
        added = 0
        super().tap do |connection|
          connection.define_singleton_method(:read_entries) do |*arguments|
            count = other.call("HGET", "{heddle_pubsub}:state", "count")
            other.call("XADD", STREAM, "#{count}-#{added += 1}", "foo", "bar")
            super(*arguments)
          end
        end
      end
    end
  end

  def test_entries_of_another_program_without_end_hide_no_loss
    Heddle::PubSub::History.open(1 << 20, 100, 300)
    backend = backend_beside_another_program
    gone = Array.new(2) { backend.publish("room", "x") }.last
    redis.call("XDEL", STREAM, "#{offset(gone)}-0")

    assert backend.follow(20, report: ->(*, **) {})
    assert_equal gone, Heddle::PubSub::History.position("room"), "the history begins behind the message that is gone"
    last = backend.publish("room", "y")
    sleep 0.001 until Heddle::PubSub::History.position("room") == last
  end

  # A worker that was forked before there was an answer leaves that to its master.
  def test_a_forked_process_does_not_wait_for_the_backend
    backend = Heddle::PubSub::Backend.new("redis://127.0.0.1:1/0")

    refute backend.follow(0, report: ->(*, **) {})
    child = fork { exit!(backend.follow_here ? 0 : 1) }
    _, status = Process.wait2(child)

    assert_predicate status, :success?
  end

  def test_a_missing_gem_is_named
    backend = Heddle::PubSub::Backend.new("redis://127.0.0.1:1/0")
    backend.define_singleton_method(:require) { |_name| raise LoadError }
    wrong = assert_raises(Heddle::PubSub::UnreachableError) { backend.connect }

    assert_equal "redis://127.0.0.1:1/0 needs the gem redis-client: add it to the Gemfile", wrong.message
  end

  def test_a_wrong_password_is_said_without_it
    redis.call("CONFIG", "SET", "requirepass", "right")
    backend = Heddle::PubSub::Backend.new(url.sub("//", "//:wr0ng@"))
    refused = assert_raises(Heddle::PubSub::Backend::LostError) { backend.connect }

    assert_match(/WRONGPASS/, refused.message)
    refute_includes refused.message, "wr0ng"
    assert_raises(Heddle::PubSub::Backend::LostError) { Heddle::PubSub::Backend.new(url).connect }
    assert Heddle::PubSub::Backend.new(url.sub("//", "//:right@")).connect.open
  end

  def test_the_password_is_in_no_message
    backend = Heddle::PubSub::Backend.new("redis://user:secret@127.0.0.1:1/0")

    assert_equal "redis://127.0.0.1:1/0", backend.to_s
    hidden = ["postgres:///x?password=secret&user=a&sslpassword=secret", "postgres://u:se/cr@et@host/x"].map do |url|
      Heddle::PrintableText.url(url)
    end

    assert_equal ["postgres:///x?password=…&user=a&sslpassword=…", "postgres://host/x"], hidden
  end

  def test_an_invalid_backend_address_is_rejected_with_an_example
    wrong = assert_raises(ArgumentError) { Heddle::PubSub::Backend.new("nats://me:secret@x") }
    assert_match(%r{\A"nats://x" is not an address.*redis:// and rediss://.*as "redis://localhost:6379/1"},
                 wrong.message)
    wrong = assert_raises(ArgumentError) { Heddle::PubSub::Backend.new("redis://x?name=a b") }
    assert_match(/lowercase letters, digits/, wrong.message)
  end
end
