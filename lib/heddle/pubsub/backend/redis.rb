# frozen_string_literal: true

require "redis-client"

module Heddle
  module PubSub
    class Backend
      # A connection to Redis (6.2 or newer). All messages are in one stream, whose entries have their offsets for ids.
      # A Hash has the epoch and the count.
      #
      # A restart may have lost messages whose offsets would then be given again. So the epoch is a new one when the
      # server is another process than before, unless it writes each command to disk before it answers.
      class Redis
        # Seconds; a command that takes longer is given up with its connection.
        TIMEOUT = 5
        # Seconds for which the number of a publisher's last batch is kept.
        MEMORY = 600
        private_constant :TIMEOUT, :MEMORY

        # Keys: state, stream. Arguments: what identifies the server's data, and an epoch that nobody has used.
        OPEN = <<~LUA
          local state = redis.call('HMGET', KEYS[1], 'epoch', 'identity', 'count')
          if not state[1] or state[2] ~= ARGV[1] then
            local count = tonumber(state[3] or '0')
            local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
            if last then count = math.max(count, tonumber(string.match(last[1], '^%d+'))) end
            count = string.format('%.0f', count)
            redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'identity', ARGV[1], 'count', count, 'floor', count)
          end
          local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
          state = redis.call('HMGET', KEYS[1], 'epoch', 'count', 'floor')
          return { state[1], state[2], state[3], oldest and string.match(oldest[1], '^%d+') or '' }
        LUA

        # Keys: state, stream, publisher. Arguments: epoch, the batch's number, how many messages are stored, seconds
        # for which the number is kept; then topic and data of each message. Gives the first message's offset; nil: the
        # epoch is another one.
        PUBLISH = <<~LUA
          if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return false end
          local number, first, epoch = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+):(%d+):(%w+)$')
          if epoch == ARGV[1] and number == ARGV[2] then return first end
          if epoch == ARGV[1] and tonumber(number) > tonumber(ARGV[2]) then return '0' end
          local messages = (#ARGV - 4) / 2
          first = redis.call('HINCRBY', KEYS[1], 'count', messages) - messages + 1
          for i = 0, messages - 1 do
            redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], string.format('%.0f-0', first + i),
              'e', ARGV[1], 't', ARGV[5 + 2 * i], 'd', ARGV[6 + 2 * i])
          end
          first = string.format('%.0f', first)
          redis.call('SET', KEYS[3], ARGV[2] .. ':' .. first .. ':' .. ARGV[1], 'EX', ARGV[4])
          return first
        LUA
        private_constant :OPEN, :PUBLISH

        # @param url [String]
        # @param name [String]
        # @param stored [Integer]
        # @raise [Lost]
        def initialize(url, name, stored)
          # Cluster nodes keep keys with the same braces together.
          @state = "{#{name}}:state"
          @stream = "{#{name}}:stream"
          @publisher = "{#{name}}:publisher:"
          @stored = stored
          @redis = RedisClient.config(url:, timeout: TIMEOUT, reconnect_attempts: 0).new_client
          translate { @identity = identity }
        end

        # @return [State]
        def open
          epoch, count, floor, oldest = translate { run(OPEN, [@state, @stream], [@identity, Backend.new_epoch]) }
          oldest = oldest.empty? ? Integer(count) + 1 : Integer(oldest)
          State.new(epoch:, count: Integer(count), oldest: [oldest, Integer(floor) + 1].max)
        end

        # @param epoch [String]
        # @param publisher [String]
        # @param number [Integer] of the batch
        # @param messages [Array<Array(String, String)>] topics and data
        # @return [Integer] the first message's offset
        def publish(epoch, publisher, number, messages)
          arguments = [epoch, number, @stored, MEMORY, *messages.flatten]
          first = translate { run(PUBLISH, [@state, @stream, @publisher + publisher], arguments) }
          raise EpochChanged unless first

          Integer(first)
        end

        # @param after [Integer] offset
        # @param most [Integer] messages
        # @param wait [Numeric] seconds
        # @return [Array<Stored>] in order; empty: none has come
        def read(after, most, wait)
          answer = translate do
            @redis.blocking_call(wait + TIMEOUT, "XREAD", "COUNT", most, "BLOCK", (wait * 1000).to_i,
                                 "STREAMS", @stream, "#{after}-0")
          end
          entries = answer.is_a?(Hash) ? answer.values.first : answer&.dig(0, 1)
          (entries || []).map do |id, fields|
            fields = Hash[*fields]
            Stored.new(epoch: fields["e"], offset: id.to_i, topic: fields["t"], data: fields["d"])
          end
        end

        # @return [void]
        def close = @redis.close

        private

        def run(script, keys, arguments) = @redis.call("EVAL", script, keys.size, *keys, *arguments)

        # A value that changes when this server's data may have gone back: the process, or that its disk has all it
        # confirmed.
        def identity
          return "durable" if durable?

          @redis.call("INFO", "server")[/^run_id:(\w+)/, 1]
        end

        def durable?
          settings = @redis.call("CONFIG", "GET", "append*")
          settings = Hash[*settings] unless settings.is_a?(Hash)
          settings["appendonly"] == "yes" && settings["appendfsync"] == "always" &&
            @redis.call("INFO", "replication").include?("connected_slaves:0")
        rescue RedisClient::CommandError
          false # CONFIG is forbidden where Redis is rented
        end

        def translate
          yield
        rescue RedisClient::Error, SystemCallError, IOError => e
          raise Lost, "#{e.message} (#{e.class})"
        end
      end
    end
  end
end
