# frozen_string_literal: true

require "redis-client"

module Heddle
  module PubSub
    class Backend
      # A connection to Redis (6.2 or newer). All messages are in one stream, whose entries have their offsets as ids. A
      # Hash has the epoch and the count.
      #
      # When Redis restarts, messages may be lost, and their offsets would be assigned again. So Redis gets a new epoch
      # with each process, unless it loses no message (see #durable?).
      class RedisConnection
        include MonotonicClock

        # Seconds; a command that takes longer is given up with its connection.
        TIMEOUT = 5
        # Seconds for which the number of a publisher's last batch is kept.
        MEMORY = 600
        private_constant :TIMEOUT, :MEMORY

        # Keys: state, stream. Arguments: the identity of the server's data, and an epoch that no server has used.
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

        # Keys: state, stream, publisher. Arguments: epoch, the batch's number, how many messages are stored, seconds
        # for which the number is kept; then topic and data of each message. Returns the first message's offset, nil in
        # another epoch, or '0' if the publisher's last batch has a higher number. An entry of another program may have
        # an id that is higher than the count, and Redis refuses lower ids: then the offsets continue after that
        # entry's id, as far as Lua's numbers are exact.
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
                KEYS[2] .. ', and none can follow it: delete the stream')
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
        # @param stored [Integer]
        # @raise [LostError]
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
          raise EpochChangedError unless first

          Integer(first)
        end

        # @param after [Integer] offset
        # @param most [Integer] messages
        # @param wait [Numeric] seconds, at least 0.001: Redis takes 0 as forever
        # @param counted [Integer] the offset of the last message that the stream is known to have had
        # @yieldparam foreign [String] an entry that Heddle did not write, and that is skipped
        # @return [Array<Stored>] in order; empty if no message came within `wait`, and the stream has none after
        #   `after` and up to `counted`
        def read(after, most, wait, counted)
          from = @after == after ? @from : "#{after}-0"
          deadline = now + wait
          until (entries = read_entries(from, most, wait)).empty?
            found = entries.filter_map do |id, fields|
              message(id, fields) || (yield "the entry #{id} of #{@stream}"
                                      nil)
            end
            # Skipped entries have no offset, so the next read starts after the last id.
            @after = found.last&.offset || after
            @from = from = entries.last.first
            return found if found.any?
            # Other programs may add entries without end. Ids ascend, so no message up to `counted` follows this entry.
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

        # @return [Stored, nil] nil: Heddle does not write such entries
        def message(id, fields)
          fields = fields.each_slice(2).to_h
          return unless fields.keys == %w[e t d] && EPOCH.match?(fields["e"].b) && id.end_with?("-0")

          Stored.new(epoch: fields["e"], offset: Integer(id.delete_suffix("-0")), topic: fields["t"], data: fields["d"])
        end

        def run(script, keys, arguments) = @redis.call("EVAL", script, keys.size, *keys, *arguments)

        # Redis' run_id, which changes when it restarts and may have lost its newest messages; a fixed value if it loses
        # none, see #durable?.
        def identity
          return "durable" if durable?

          @redis.call("INFO", "server")[/^run_id:(\w+)/, 1]
        end

        # Redis loses no confirmed message if it first writes each one to disk, and has no replica that could take over
        # without the last ones.
        def durable?
          settings = @redis.call("CONFIG", "GET", "append*")
          settings = Hash[*settings] unless settings.is_a?(Hash)
          settings["appendonly"] == "yes" && settings["appendfsync"] == "always" &&
            @redis.call("INFO", "replication").include?("connected_slaves:0")
        rescue RedisClient::CommandError
          false # hosted Redis services forbid CONFIG
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
