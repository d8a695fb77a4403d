# frozen_string_literal: true

module Heddle
  class Server
    # Writes a trace of the last seconds to a file when a request was slow or the loop has stalled. The trace shows how
    # each request spent its time, and which other request delayed it. The C extension records the activity of all
    # fibers; its buffer has a fixed size (ext/heddle/scheduler/recorder.h).
    class Recorder
      Autoloads.add(self, "heddle/server/recorder")

      # Minimum seconds between two files about requests, and between two files about stalls.
      PAUSE = 10
      # The file begins this many seconds before the request or the stall began.
      BEFORE = 1
      # Priority of the thread that writes the file. It is low, so that a loop that waits for the GVL soon gets the GVL.
      PRIORITY = -3
      # Seconds after which the thread that writes the file lets other threads run.
      SLICE = 0.005
      private_constant :PAUSE, :BEFORE, :PRIORITY, :SLICE

      class << self
        # Records for the given time and writes the file. Serves `heddle record`.
        # @param seconds [Numeric] how long to record
        # @param configuration [Configuration]
        # @param asker [IO, nil] a pipe; when its other end is closed, the recording is abandoned
        # @return [String] the path of the file
        # @raise [Control::RejectedError] if nothing can be recorded, the recording was abandoned, or the file can't be
        #   written
        def record(seconds, configuration, asker = nil)
          problem = if configuration.mode == :ractor then " in mode ractor"
                    elsif configuration.account.empty? then ": the option account is off"
                    end
          raise Control::RejectedError, "nothing can be recorded#{problem}" if problem

          snapshot = Recording.take(seconds, asker) or raise Control::RejectedError, "another recording is under way"
          about = { reason: "heddle record", seconds:, lost: snapshot.lost }
          files = Files.new(Files.folder(configuration.environment))
          in_thread { write(files, snapshot, Cause.new(snapshot), about:) }.value
        rescue SystemCallError => e
          raise Control::RejectedError, "can't write the recording: #{e.message.sub(/ @ \w+/, "")}"
        end

        # Runs the block in a thread with low priority, because building the file's text takes long.
        # @return [Thread]
        def in_thread
          thread = Thread.new do
            Stalls::Switch.own_thread = Thread.current
            yield
          ensure
            Stalls::Switch.own_work_until = MonotonicClock.now
          end
          thread.priority = PRIORITY
          thread.report_on_exception = false
          thread
        end

        # Lets other threads run, but at most once in SLICE seconds: another thread that computes may keep the GVL for
        # 100 ms each time.
        # @return [void]
        def give_way
          return if @next_pass && MonotonicClock.now < @next_pass

          Thread.pass
          @next_pass = MonotonicClock.now + SLICE
        end

        # Writes a file.
        # @return [String] its path
        def write(files, snapshot, cause, **options)
          trace = Trace.new(snapshot, Stalls.recent, cause, **options)
          files.write { |io| trace.write(io) }
        end
      end

      # @param limit [Numeric] a request that takes more seconds is slow
      # @param log [#event]
      # @param folder [String] the folder for the files
      def initialize(limit, log, folder)
        @limit = limit
        @log = log
        @files = Files.new(folder)
        @written = {}
        Recording.keep
        Stalls::Switch.observer = method(:stalled)
      end

      # Called in a request's fiber when the request has ended. A request whose response began within the limit is not
      # slow, however long the body of the response took. Time that a request spent on a slow client does not count.
      # @param exchange [HTTP::Exchange]
      # @return [void]
      def end(exchange)
        return if (exchange.response&.begun_after || exchange.age) < @limit || exchange.hijacked?

        request = Account.number or return # this call also records the time since the fiber's last wait
        account = Account.current
        by_client = account.fetch(:client, 0) + account.fetch(:received, 0)
        return if account[:total] - by_client < @limit || paused?(:request)

        ended = MonotonicClock.now
        write(:request, ended - account[:total]) do |snapshot, cause|
          { reason: "slow request", request: snapshot.name(request), duration: account[:total],
            cause: cause.of(request, account, ended) }
        end
      end

      private

      # Called when a stall was reported. Ignores a stall outside of requests if it is shorter than the limit, because
      # such stalls are frequent while the application loads.
      def stalled(stall)
        return unless stall.request || stall.seconds >= @limit
        return if paused?(:stall)

        write(:stall, stall.began) do |_, cause|
          { reason: "stall", request: stall.request, duration: stall.seconds, cause: cause.of_stall(stall) }
        end
      end

      # Returns true while a file is being written, or if one of this kind was begun less than PAUSE seconds ago.
      def paused?(kind)
        @writer&.alive? || (@written[kind] && MonotonicClock.now - @written[kind] < PAUSE)
      end

      def write(kind, began)
        since = began - BEFORE
        snapshot = Snapshot.take(since) or return
        @written[kind] = MonotonicClock.now
        @writer = Recorder.in_thread do
          cause = Cause.new(snapshot)
          about = yield(snapshot, cause)
          found = about[:cause]
          about = { **about, cause: found.reason, place: found.place, culprit: found.culprit }.compact
          file = Recorder.write(@files, snapshot, cause, since:, about: { **about, lost: snapshot.lost })
          @log.event(:trace_written, **about, file:)
        rescue StandardError, ScriptError => e
          error, file = e.message.split(/ @ \w+ - /, 2)
          @log.event(:trace_not_written, file:, error: "#{error} (#{e.class})")
        end
      end
    end
  end
end
