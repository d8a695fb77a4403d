# frozen_string_literal: true

require "redis-client"

module Heddle
  module PubSub
    class Backend
      # A connection to Redis (6.2 or newer). All messages are in one stream; the id of an entry is the message's
      # offset. A hash contains the epoch and the number of messages.
      #
      # A restart of Redis may lose messages, whose offsets are then assigned again. So a new epoch begins with each
      # restart of Redis, unless Redis is configured to lose no message (see #durable?).
      class RedisConnection
        include MonotonicClock

        # Maximum seconds for a command; after that, the connection is closed.
        TIMEOUT = 5
        # Seconds for which Redis keeps the number of a publisher's last batch.
        MEMORY = 600
        private_constant :TIMEOUT, :MEMORY

        # Reads the state, and begins a new epoch if the identity has changed. Keys: state, stream. Arguments: the
        # identity of the server's data, and a new random epoch.
        OPEN = <<~LUA
          local state = redis.call('HMGET', KEYS[1], 'epoch', 'identity', 'count')
          if not state[1] or state[2] ~= ARGV[1] then
            local count = tonumber(state[3] or '0')
            local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
            last = last and string.match(last[1], '^%d+') or '0'
            if #last <= 15 then count = math.max(count, tonumber(last)) end
            count = string.format('%.0f', count)
            redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'identity', ARGV[1], 'count', count, 'floor', count)
          end
          local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
          state = redis.call('HMGET', KEYS[1], 'epoch', 'count', 'floor')
          return { state[1], state[2], state[3], oldest and string.match(oldest[1], '^%d+') or '' }
        LUA

        # Appends a batch of messages. Keys: state, stream, publisher. Arguments: epoch, number of the batch, number of
        # messages to keep, seconds to keep the batch's number; then topic and data of each message.
        #
        # Returns the offset of the first message, nil in another epoch, or '0' if the publisher's last batch has a
        # higher number. Another program may have written an entry with an id above the count, and Redis rejects lower
        # ids. In this case the offsets continue after that id, if it has at most 15 digits, for which Lua's numbers are
        # exact.
        PUBLISH = <<~LUA
          if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return false end
          local number, first, epoch = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+):(%d+):(%w+)$')
          if epoch == ARGV[1] and number == ARGV[2] then return first end
          if epoch == ARGV[1] and tonumber(number) > tonumber(ARGV[2]) then return '0' end
          local messages = (#ARGV - 4) / 2
          first = tonumber(redis.call('HGET', KEYS[1], 'count')) + 1
          local function add(i)
            return redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], string.format('%.0f-0', first + i),
              'e', ARGV[1], 't', ARGV[5 + 2 * i], 'd', ARGV[6 + 2 * i])
          end
          local added = add(0)
          if type(added) == 'table' and string.find(added.err, 'equal or smaller', 1, true) then
            local info = redis.call('XINFO', 'STREAM', KEYS[2])
            local last
            for i = 1, #info, 2 do
              if info[i] == 'last-generated-id' then last = string.match(info[i + 1], '^%d+') end
            end
            if #last > 15 then
              return redis.error_reply('another program wrote an entry with the id ' .. last .. '-… to the stream ' ..
                KEYS[2] .. ', after which no message can be added: delete the stream')
            end
            first = tonumber(last) + 1
            added = add(0)
          end
          if type(added) == 'table' and added.err then return added end
          redis.call('HSET', KEYS[1], 'count', string.format('%.0f', first + messages - 1))
          for i = 1, messages - 1 do
            added = add(i)
            if type(added) == 'table' and added.err then return added end
          end
          first = string.format('%.0f', first)
          redis.call('SET', KEYS[3], ARGV[2] .. ':' .. first .. ':' .. ARGV[1], 'EX', ARGV[4])
          return first
        LUA
        private_constant :OPEN, :PUBLISH

        # @param url [String]
        # @param name [String]
        # @param stored [Integer] minimum number of messages that the stream keeps
        # @raise [LostError] if Redis can't be reached; {#open}, {#publish} and {#read} raise this error, too
        def initialize(url, name, stored)
          # The text in braces is the same in all keys, so that Redis Cluster keeps them on one node.
          @state = "{#{name}}:state"
          @stream = "{#{name}}:stream"
          @publisher = "{#{name}}:publisher:"
          @stored = stored
          @redis = RedisClient.config(url:, timeout: TIMEOUT, reconnect_attempts: 0).new_client
          translate { @identity = identity }
        end

        # Begins a new epoch if the server may have gone back to earlier data, in which messages are missing.
        # @return [State]
        def open
          epoch, count, floor, oldest = translate { run(OPEN, [@state, @stream], [@identity, Backend.new_epoch]) }
          oldest = oldest.empty? ? Integer(count) + 1 : Integer(oldest)
          State.new(epoch:, count: Integer(count), oldest: [oldest, Integer(floor) + 1].max)
        end

        # Publishes a batch of messages.
        # @param epoch [String]
        # @param publisher [String] the publisher's id
        # @param number [Integer] the batch's number
        # @param messages [Array<Array(String, String)>] topic and data of each message
        # @return [Integer] the offset of the first message; 0: nothing was added, because a batch of this publisher
        #   with a higher number was added before
        # @raise [EpochChangedError] if the stream has another epoch
        def publish(epoch, publisher, number, messages)
          arguments = [epoch, number, @stored, MEMORY, *messages.flatten]
          first = translate { run(PUBLISH, [@state, @stream, @publisher + publisher], arguments) }
          raise EpochChangedError unless first

          Integer(first)
        end

        # Reads the next messages. Waits for one if there is none.
        # @param after [Integer] the offset to read after
        # @param most [Integer] maximum number of messages
        # @param wait [Numeric] maximum seconds to wait, at least 0.001, because 0 means forever for Redis
        # @param counted [Integer] the offset of the last message that the stream has certainly had
        # @yieldparam foreign [String] describes a skipped entry, which Heddle did not write
        # @return [Array<Stored>] in the order of offsets; empty: no message came within `wait`, and the stream has none
        #   after `after` and up to `counted`
        def read(after, most, wait, counted)
          from = @after == after ? @from : "#{after}-0"
          deadline = now + wait
          until (entries = read_entries(from, most, wait)).empty?
            found = entries.filter_map do |id, fields|
              message(id, fields) || (yield "the entry #{id} of #{@stream}"
                                      nil)
            end
            # The next read starts after the last id, which may be the id of a skipped entry.
            @after = found.last&.offset || after
            @from = from = entries.last.first
            return found if found.any?
            # Ends the loop even if other programs add entries without end. Ids ascend, so no message up to `counted`
            # can follow an entry with an id of at least `counted`.
            break if now >= deadline && Integer(from[/\d+/]) >= counted
          end
          []
        end

        # @return [void]
        def close = @redis.close

        private

        def read_entries(from, most, wait)
          answer = translate do
            @redis.blocking_call(wait + TIMEOUT, "XREAD", "COUNT", most, "BLOCK", (wait * 1000).to_i,
                                 "STREAMS", @stream, from)
          end
          (answer.is_a?(Hash) ? answer.values.first : answer&.dig(0, 1)) || []
        end

        # @return [Stored, nil] nil: Heddle did not write the entry
        def message(id, fields)
          fields = fields.each_slice(2).to_h
          return unless fields.keys == %w[e t d] && EPOCH.match?(fields["e"].b) && id.end_with?("-0")

          Stored.new(epoch: fields["e"], offset: Integer(id.delete_suffix("-0")), topic: fields["t"], data: fields["d"])
        end

        def run(script, keys, arguments) = @redis.call("EVAL", script, keys.size, *keys, *arguments)

        # Returns Redis' run_id, which changes at each restart of Redis, in which messages may be lost. If Redis loses
        # no messages (see #durable?), returns a constant.
        def identity
          return "durable" if durable?

          @redis.call("INFO", "server")[/^run_id:(\w+)/, 1]
        end

        # Redis loses no confirmed message if it writes each to disk before the confirmation, and has no replica that
        # could take over without the last messages.
        def durable?
          settings = @redis.call("CONFIG", "GET", "append*")
          settings = Hash[*settings] unless settings.is_a?(Hash)
          settings["appendonly"] == "yes" && settings["appendfsync"] == "always" &&
            @redis.call("INFO", "replication").include?("connected_slaves:0")
        rescue RedisClient::CommandError
          false # many hosted Redis services forbid CONFIG
        end

        def translate
          yield
        rescue RedisClient::Error, SystemCallError, IOError => e
          raise LostError, "#{e.message} (#{e.class})"
        end
      end
    end
  end
end
