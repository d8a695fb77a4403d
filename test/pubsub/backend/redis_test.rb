# frozen_string_literal: true

require_relative "support/machines"
require_relative "support/private_redis"

# A real Redis gives messages their order.
class PubSubRedisTest < Minitest::Test
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

  # A worker that was forked before there was an answer leaves that to its master.
  def test_a_forked_process_does_not_wait_for_the_backend
    backend = Heddle::PubSub::Backend.new("redis://127.0.0.1:1/0")

    refute backend.follow(0, notice: ->(_text) {})
    child = fork { exit!(backend.follow_here ? 0 : 1) }
    _, status = Process.wait2(child)

    assert_predicate status, :success?
  end

  def test_a_missing_gem_is_named
    backend = Heddle::PubSub::Backend.new("redis://127.0.0.1:1/0")
    backend.define_singleton_method(:require) { |_name| raise LoadError }
    wrong = assert_raises(Heddle::PubSub::Unreachable) { backend.connect }

    assert_equal "redis://127.0.0.1:1/0 needs the gem redis-client: add it to the Gemfile", wrong.message
  end

  def test_a_wrong_password_is_said_without_it
    redis.call("CONFIG", "SET", "requirepass", "right")
    backend = Heddle::PubSub::Backend.new(url.sub("//", "//:wr0ng@"))
    refused = assert_raises(Heddle::PubSub::Backend::Lost) { backend.connect }

    assert_match(/WRONGPASS/, refused.message)
    refute_includes refused.message, "wr0ng"
    assert_raises(Heddle::PubSub::Backend::Lost) { Heddle::PubSub::Backend.new(url).connect }
    assert Heddle::PubSub::Backend.new(url.sub("//", "//:right@")).connect.open
  end

  def test_the_password_is_in_no_message
    backend = Heddle::PubSub::Backend.new("redis://user:secret@127.0.0.1:1/0")

    assert_equal "redis://127.0.0.1:1/0", backend.to_s
    hidden = ["postgres:///x?password=secret&user=a&sslpassword=secret", "postgres://u:se/cr@et@host/x"].map do |url|
      Heddle::PubSub::Backend.hide_password(url)
    end

    assert_equal ["postgres:///x?password=…&user=a&sslpassword=…", "postgres://host/x"], hidden
  end

  def test_what_is_no_address_of_a_backend_is_refused
    wrong = assert_raises(ArgumentError) { Heddle::PubSub::Backend.new("nats://x") }
    assert_match(/must begin with redis:/, wrong.message)
    wrong = assert_raises(ArgumentError) { Heddle::PubSub::Backend.new("redis://x", name: "a b") }
    assert_match(/small letters, digits/, wrong.message)
  end
end
