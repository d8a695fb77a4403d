# frozen_string_literal: true

module Heddle
  module Rack
    # An exchange as a thread sees it. The exchange itself stays with a fiber of the loop that owns its connection:
    # that fiber does what the thread asks for, until the thread gives it back.
    class ExchangeProxy
      include MonotonicClock

      # Raised when code uses a request that has ended.
      class EndedError < IOError
        include Heddle::Error

        def initialize(message = "this request has ended")
          super
        end
      end

      # Bytes of content by which a thread may be ahead of the loop.
      AHEAD = 65_536
      # Seconds until a head leaves for which the thread has no content yet.
      HEAD_DELAY = 0.02
      # Work to be done in the loop, and the queue on which a thread waits for its result; nil: none waits.
      Call = Data.define(:work, :answers)
      private_constant :AHEAD, :HEAD_DELAY, :Call

      # @return [HTTP::Exchange]
      attr_reader :exchange

      # @return [Fiber] the one of the loop
      attr_reader :fiber

      # @param exchange [HTTP::Exchange]
      # @yieldparam proxy [ExchangeProxy] in the thread: serves the request
      def initialize(exchange, &service)
        @exchange = exchange
        @account = Account.share
        @fiber = Fiber.current
        @service = service
        @calls = Thread::Queue.new
        @ahead = 0
        @cancelled = false
        @thread = @head_due = @failure = @response = @body = @last = nil
      end

      # -- in the loop's fiber --

      # Does what the thread asks for until it gives the exchange back.
      # @return what the thread's last wish returns
      # @raise what that raises
      def follow
        while (call = Account.wait_for(Account::THREAD) { next_call })
          perform(call)
        end
        raise @failure if @failure

        @last&.call
      ensure
        end_calls
      end

      # The thread is not to continue with this request.
      # @param reason [Cancelled]
      # @return [void]
      def cancel(reason)
        @cancelled = true
        @thread&.raise(reason)
      end

      # @return [BodyProxy]
      def body = @body ||= BodyProxy.new(self, @exchange.body)

      # -- in the thread --

      # Serves the request.
      # @return [void]
      def run
        return if @cancelled

        @thread = Thread.current
        Thread.handle_interrupt(Cancelled => :immediate) { Account.use(@account) { @service.call(self) } }
      rescue Cancelled, EndedError
        # No thread waits for it any more.
      ensure
        @thread = nil
        release
      end

      # Has the loop do this and waits for it.
      # @param aside [Boolean] whether it may take its time while the loop does what it is asked for meanwhile
      # @return what the block returns
      # @raise what the block raises
      # @raise [EndedError]
      def ask(aside: false, &work)
        answers = Thread::Queue.new
        add(aside ? Call.new(-> { Fiber.schedule { answer(work, answers) } }, nil) : Call.new(work, answers))
        value, error = answers.pop
        raise error if error

        value
      end

      # Has the loop do this and continues; the next call raises its error.
      # @param size [Integer] bytes that are kept until it is done
      # @return [void]
      # @raise [EndedError]
      def tell(size = 0, &work)
        @ahead += size
        if @ahead > AHEAD
          @ahead = 0
          ask(&work)
        else
          raise_failure
          add(Call.new(work, nil))
        end
      end

      # Has the loop send the head of the response by itself, unless the thread sends or withdraws it soon.
      # @return [void]
      def flush_head_later = tell { @head_due = now + HEAD_DELAY }

      # The thread is done with it. Idempotent.
      # @yield in the loop's fiber, once everything else is done
      # @return [void]
      def release(&last)
        return if @calls.closed?

        @last = last
        @calls.close
      end

      # -- as an exchange --

      # @see HTTP::Exchange
      def method = asked { @exchange.method }

      def target = asked { @exchange.target }

      def interim? = @exchange.interim?

      # The loop alone decides about an upgrade.
      def upgradable? = false

      def hijack? = @exchange.hijack?

      def remote_address = @exchange.remote_address

      def request_id = @exchange.request_id

      def request_id=(name)
        @exchange.request_id = name
      end

      def engine = @exchange.engine

      def head? = @exchange.head?

      def closed? = @exchange.closed?

      def hijacked? = @exchange.hijacked?

      # @return [ResponseProxy]
      def response = @response ||= ResponseProxy.new(self, @exchange.response)

      def started? = ask { @exchange.started? }

      def received? = ask { @exchange.received? }

      def readpartial(size) = ask(aside: true) { @exchange.readpartial(size) }

      def drain = ask { @exchange.drain }

      def reject(status, reason) = ask { @exchange.reject(status, reason) }

      def detach = ask { @exchange.detach }

      # It has this name because it is Rack's `rack.hijack`.
      def call = ask { @exchange.call }

      def close
        ask { @exchange.close }
      rescue EndedError
        nil
      end

      private

      def add(call)
        @calls << call
      rescue ClosedQueueError
        raise EndedError
      end

      def raise_failure
        failure = @failure or return
        @failure = nil
        raise failure
      end

      # For the log, which may have something to say when all is over.
      def asked
        yield
      rescue IOError
        "?"
      end

      def next_call
        return @calls.pop unless @head_due

        call = @calls.pop(timeout: (@head_due - now).clamp(0..))
        return call if call || @calls.closed?

        @head_due = nil
        Call.new(-> { @exchange.response.flush }, nil)
      end

      def perform(call)
        if @failure
          # After a failed write the following ones make no sense.
          return unless call.answers

          failure = @failure
          @failure = nil
          return call.answers << [nil, failure]
        end
        call.answers ? answer(call.work, call.answers) : call.work.call
      rescue ApplicationFailure => e
        @failure = e
      end

      def answer(work, answers)
        answers << [work.call, nil]
      rescue ApplicationFailure => e
        answers << [nil, e]
      rescue Exception => e
        answers << [nil, e]
        raise
      end

      def end_calls
        @calls.close
        while (call = @calls.pop)
          call.answers&.push([nil, EndedError.new])
        end
      end
    end
  end
end
