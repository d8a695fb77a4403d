# frozen_string_literal: true

module Heddle
  module PubSub
    class Backend
      # Publishes the messages of all fibers and threads of this process. It has its own connection and thread. So a
      # cancelled task can't leave an incomplete command on the connection, and publishing is never part of an
      # application's transaction. Messages that come while a batch is being sent form the next batch.
      #
      # Each batch has a number. If the backend's reply was lost, the batch is sent again, and the backend recognizes it
      # by its number. So it is not published twice.
      class Publisher
        include MonotonicClock

        # Maximum number of messages in a batch. No message is added to a batch that has reached BATCH_BYTES.
        BATCH_SIZE = 500
        BATCH_BYTES = 1 << 20
        # Maximum number of waiting messages.
        QUEUE_LIMIT = 10_000
        # Seconds within which the backend must confirm a message.
        TIMEOUT = 5
        private_constant :BATCH_SIZE, :BATCH_BYTES, :QUEUE_LIMIT, :TIMEOUT

        Entry = Data.define(:topic, :data, :due, :answer)
        private_constant :Entry

        # @param backend [Backend]
        def initialize(backend)
          @backend = backend
          @id = SecureRandom.hex(8)
          @number = 0
          @queue = Thread::Queue.new
          @thread = Thread.new { run }
          @thread.name = "heddle publisher"
        end

        # @return [Boolean] false: its thread has ended, for example in a forked process
        def alive? = @thread.alive?

        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position
        # @raise [UnreachableError]
        def publish(topic, data)
          if @queue.size >= QUEUE_LIMIT
            raise UnreachableError, "the message was not published: #{QUEUE_LIMIT} others already wait for #{@backend}"
          end

          entry = Entry.new(topic:, data:, due: now + TIMEOUT, answer: Thread::Queue.new)
          @queue << entry
          answer = entry.answer.pop(timeout: TIMEOUT + 1)
          return answer if answer.is_a?(String)

          raise answer || UnreachableError.new("#{@backend} has not confirmed the message within #{TIMEOUT} s; it " \
                                               "may or may not have been published")
        end

        private

        def run
          Thread.current.report_on_exception = false
          loop { publish_batch(take_batch) }
        ensure
          @connection&.close
        end

        def take_batch
          batch = [@queue.pop]
          bytes = batch.first.data.bytesize
          while batch.size < BATCH_SIZE && bytes < BATCH_BYTES && (entry = take_waiting)
            batch << entry
            bytes += entry.data.bytesize
          end
          batch
        end

        def take_waiting
          @queue.pop(true)
        rescue ThreadError
          nil
        end

        def publish_batch(batch)
          @number += 1
          @unanswered = nil
          first = attempt(batch)
          History.count_published(batch.size)
          batch.each_with_index { |entry, i| entry.answer << "#{@epoch}:#{first + i}" }
        rescue ApplicationFailure => e # a driver may raise LoadError, too
          close
          reason = e.is_a?(OwnError) ? e.message : "#{e.message} (#{e.class})"
          error = UnreachableError.new("the message may or may not have been published: #{reason}")
          batch.each { |entry| entry.answer << error }
        end

        # Sends the batch until the backend confirms it. If the backend's reply was lost, the backend may have stored
        # the batch. Then @unanswered is the epoch in which the batch was sent: only in this epoch does the backend
        # recognize the batch.
        #
        # @return [Integer] the offset of the first message
        # @raise [UnreachableError] if the reply was lost, and the epoch has changed since the batch was sent
        # @raise [LostError] if the backend does not confirm the batch in time
        def attempt(batch)
          open
          if @unanswered && @unanswered != @epoch
            raise UnreachableError, "the backend's reply was lost, and the backend has been restarted or replaced since"
          end

          @connection.publish(@epoch, @id, @number, batch.map { |entry| [entry.topic, entry.data] })
        rescue EpochChangedError
          close
          retry
        rescue LostError
          @unanswered ||= @epoch if @connection
          close
          raise if now >= batch.last.due

          ReconnectPause.wait(ReconnectPause::FIRST) # the pauses stay short, because callers wait
          retry
        end

        def open
          return if @connection

          connection = @backend.connect
          @epoch = connection.open.epoch
          @connection = connection
        ensure
          connection&.close unless @connection
        end

        def close
          @connection&.close
          @connection = nil
        end
      end
    end
  end
end
