# frozen_string_literal: true

module Heddle
  module PubSub
    class Backend
      # Copies the backend's messages into the history, in a thread. It runs in the master, in the serving process if
      # there is no master, or in a process of another server, such as a worker of Puma. Several followers may write to
      # one history: each message is appended only once.
      #
      # Other programs may write to the backend's stream or tables, too. The follower skips their entries, and reports
      # the first one. If another program has deleted messages, subscribers get a reset, the notice that messages are
      # lost.
      class Follower
        include MonotonicClock

        # Maximum number of messages in one read, and the intended total size of their data in bytes.
        MAX_MESSAGES = 500
        BYTES = 8 << 20
        # Maximum number of messages to read that were published before the follower started.
        RECENT = 10_000
        # Maximum seconds that a read waits for a message. After that the epoch is checked.
        WAIT = 5
        # Replaces WAIT while the follower knows that the backend has counted messages which no read has returned yet.
        SHORT_WAIT = 0.01
        private_constant :MAX_MESSAGES, :BYTES, :RECENT, :WAIT, :SHORT_WAIT

        # @return [Integer] the ID of the process that the follower runs in
        attr_reader :pid

        # @param backend [Backend]
        # @param report [#call] called with each event
        def initialize(backend, report)
          @backend = backend
          @report = report
          @pause = ReconnectPause::FIRST
          @read_limit = 1
          @pid = Process.pid
          @began = now
          @mutex = Thread::Mutex.new
          @changed = Thread::ConditionVariable.new
          @ready = @reported = @skipped = false
          @thread = Thread.new { run }
          @thread.name = "heddle follower"
        end

        # Waits until the history is complete.
        # @param patience [Numeric] maximum seconds to wait, counted from the follower's start
        # @return [Boolean] whether the history contains all messages that the backend had at the follower's start
        def wait(patience)
          deadline = @began + patience
          @mutex.synchronize do
            @changed.wait(@mutex, deadline - now) while !@ready && now < deadline
            @ready
          end
        end

        private

        def run
          loop do
            follow
          rescue ApplicationFailure => e
            # Reconnects after any error.
            @report.call(:pubsub_unreachable, backend: @backend, reason: e.message.strip) unless @reported
            @reported = true
            @pause = ReconnectPause.wait(@pause)
          end
        end

        def follow
          connection = @backend.connect
          begin_at(connection.open)
          @report.call(:pubsub_recovered, backend: @backend) if @reported
          @reported = false
          @pause = ReconnectPause::FIRST
          loop { read(connection) }
        ensure
          connection&.close
        end

        # Chooses the offset after which the follower begins to read. Continues after the history's last message if the
        # history has the backend's epoch, and the backend still has all later messages.
        def begin_at(state)
          epoch, offset, follows = History.state
          before = [state.oldest - 1, state.count - RECENT].max
          continues = follows && epoch == state.epoch && offset >= state.oldest - 1
          History.begin(state.epoch, before) unless continues
          @epoch = state.epoch
          @offset = @appended = continues ? offset : before
          mark_ready if @offset >= state.count
          @goal = @counted = state.count
        end

        def read(connection)
          wait = @counted > @offset ? SHORT_WAIT : WAIT
          messages = connection.read(@offset, @read_limit, wait, @counted) { |foreign| report_foreign(foreign) }
          if messages.empty?
            compare(connection.open)
          else
            messages.each { |message| take(connection, message) }
            adapt_read_limit(messages)
          end
          mark_ready if @offset >= @goal
        end

        # Called when a read has returned nothing. If the backend had already counted messages after the last one that
        # was read, these messages are lost.
        def compare(state)
          if state.epoch != @epoch || state.oldest - 1 > @offset || state.count < @offset
            begin_at(state)
          elsif @counted > @offset
            History.begin(@epoch, @counted)
            @offset = @appended = @counted
          end
          @counted = state.count
        end

        # The backend does not report the size of the next messages. So this method assumes that they are as large as
        # the largest of `messages`, the ones just read. The limit rises step by step.
        def adapt_read_limit(messages)
          largest = messages.map { |message| message.data.bytesize }.max
          @read_limit = [@read_limit * 4, BYTES / [largest, 1].max].min.clamp(1, MAX_MESSAGES)
        end

        def take(connection, message)
          if message.epoch == @epoch || message.epoch == connection.open.epoch
            append(message)
          else
            report_foreign("the message #{message.offset} of the epoch #{message.epoch[0, 20].inspect}")
          end
          @offset = message.offset
        end

        def append(message)
          if message.epoch != @epoch || message.offset > @appended + 1
            History.begin(message.epoch, message.offset - 1)
            @epoch = message.epoch
          end
          case History.append(@epoch, message.offset, message.topic, message.data)
          when :too_large then History.begin(@epoch, message.offset) # does not fit into the history: reset
          when :stale, :gap then raise LostError, "another process has changed the history"
          end
          @appended = message.offset
        end

        def report_foreign(foreign)
          return if @skipped

          @skipped = true
          @report.call(:pubsub_foreign_entry, entry: foreign, backend: @backend)
        end

        def mark_ready
          return if @ready

          @mutex.synchronize do
            @ready = true
            @changed.broadcast
          end
        end
      end
    end
  end
end
