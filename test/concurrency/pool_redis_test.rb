# frozen_string_literal: true

require_relative "support/loop_helpers"
require_relative "support/private_server"

# A pool of connections to a real Redis.
class PoolRedisTest < Minitest::Test
  include Heddle::LoopHelpers

  def setup
    server = need_program("redis-server")
    skip "needs the gem redis-client: bin/setup" if Gem::Specification.find_all_by_name("redis-client").empty?
    require "redis-client"
    @server = PrivateServer.new("redis.sock") do |folder|
      [server, "--port", "0", "--unixsocket", File.join(folder, "redis.sock"), "--save", "", "--appendonly", "no"]
    end
  end

  def teardown = @server&.stop

  def connect = RedisClient.config(path: File.join(@server.folder, "redis.sock"), protocol: 2, timeout: 60).new_client

  def pool(**options)
    Heddle::Pool.new(check: ->(redis) { redis.call("PING") == "PONG" }, **options) { connect.tap { |redis| redis.call("PING") } }
  end

  def test_tasks_share_a_few_connections_and_none_mixes_answers_up
    in_loop do
      redis = pool(max: 5)
      values = Heddle.map(1..500) do |number|
        redis.with do |one|
          one.call("SET", "key:#{number}", number.to_s * 100)
          one.call("GET", "key:#{number}")
        end
      end

      assert_equal((1..500).map { |number| number.to_s * 100 }, values)
      assert_operator redis.size, :<=, 5
      redis.close
    end
  end

  def test_commands_that_wait_wait_at_the_same_time
    in_loop do
      redis = pool(max: 10)
      waiting = Array.new(10) { Heddle.async { redis.with { |one| one.blocking_call(60, "BLPOP", "list", 0).last } } }
      other = connect
      turns until other.call("INFO", "clients")[/^blocked_clients:(\d+)/, 1] == "10"
      other.call("RPUSH", "list", *(0...10))

      assert_equal ("0".."9").to_a, waiting.map(&:value).sort
      other.close
      redis.close
    end
  end

  def test_connections_that_the_server_closed_are_replaced
    in_loop do
      redis = pool(max: 2, check_after: 0)
      first = redis.with { |one| one.call("CLIENT", "ID") }
      admin = connect
      admin.call("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "yes")

      refute_equal first, redis.with { |one| one.call("CLIENT", "ID") }
      admin.close
      redis.close
    end
  end

  def test_a_task_that_is_cancelled_while_it_waits_for_an_answer_leaves_nothing_behind
    in_loop do
      redis = pool(max: 1)
      task = Heddle.async { redis.with { |one| one.blocking_call(20, "BLPOP", "none", 10) } }
      turns until redis.busy == 1
      task.cancel

      assert_equal "PONG", redis.with { |one| one.call("PING") }, "not the answer to BLPOP"
      assert_equal [1, 0], [redis.size, redis.busy]
      redis.close
    end
  end
end
