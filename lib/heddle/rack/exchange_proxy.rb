# frozen_string_literal: true

require "forwardable"

module Heddle
  module Rack
    # Stands for an exchange (one request and its response) in the thread that runs the application. The exchange itself
    # may be used only in the loop that owns its connection. There, a fiber makes the calls that the thread queues,
    # until the thread releases the exchange.
    class ExchangeProxy
      extend Forwardable
      include MonotonicClock

      # Raised when code uses a request that has ended.
      class EndedError < IOError
        include Heddle::Error

        def initialize(message = "this request has ended")
          super
        end
      end

      # A thread may write this many bytes of content before it waits until the loop has sent them.
      AHEAD = 65_536
      # After this many seconds the loop sends a held head, even if the thread has not written content yet.
      HEAD_DELAY = 0.02
      # Work for the loop, and the queue for its result. The queue is nil if the thread does not wait for the result.
      # `aside`: the work may wait, so it runs in its own fiber.
      Call = Data.define(:work, :answers, :aside)
      private_constant :AHEAD, :HEAD_DELAY, :Call

      # @return [HTTP::Exchange]
      attr_reader :exchange

      # @return [Fiber] the fiber that serves the exchange in the loop
      attr_reader :fiber

      # @return [File] the content of the response, which is closed when the exchange ends
      attr_writer :file

      # @param exchange [HTTP::Exchange]
      # @yield in the thread, to serve the request
      # @yieldparam proxy [ExchangeProxy]
      def initialize(exchange, &service)
        @exchange = exchange
        @account = Account.share
        @fiber = Fiber.current
        @service = service
        @calls = Thread::Queue.new
        @ahead = 0
        @cancelled = @ended = false
        @thread = @head_due = @failure = @response = @last = @file = nil
      end

      # @see HTTP::Exchange
      def make_lock = Thread::Mutex.new

      # -- in the loop's fiber --

      # Makes the calls that the thread queues, until the thread releases the exchange.
      # @return what the block of {#release} returns; nil without a block
      # @raise what that block raises, or the error of a queued call if the thread has not received the error
      def follow
        while (call = Account.wait_for(Account::THREAD) { next_call })
          perform(call)
        end
        raise @failure if @failure

        @last&.call
      ensure
        @ended = true
        end_calls
        @file&.close
      end

      # Ends the thread's work on this request.
      # @param reason [Cancelled]
      # @return [void]
      def cancel(reason)
        @cancelled = true
        @thread&.raise(reason)
      end

      # -- in the thread --

      # Serves the request.
      # @return [void]
      def run
        return if @cancelled

        @thread = Thread.current
        Thread.handle_interrupt(Cancelled => :immediate) { Account.use(@account) { @service.call(self) } }
      rescue Cancelled, EndedError
        # The request has ended.
      ensure
        @thread = nil
        drop_late_cancellation
        release
      end

      # Runs the block in the loop, and waits for it.
      # @param aside [Boolean] whether the block may wait; it then runs in its own fiber, while the loop makes later
      #   calls
      # @return what the block returns
      # @raise what the block raises
      # @raise [EndedError] if the request has ended
      def ask(aside: false, &work)
        answers = Thread::Queue.new
        add(Call.new(work, answers, aside))
        value, error = answers.pop
        raise error if error

        value
      end

      # Queues the block for the loop, and returns at once, unless more than AHEAD bytes are queued. If the block raises
      # an error, the thread's next call of this proxy raises it.
      # @param size [Integer] how many bytes the block is going to send
      # @return [void]
      # @raise [EndedError]
      def enqueue(size = 0, &work)
        @ahead += size
        if @ahead > AHEAD
          @ahead = 0
          ask(&work)
        else
          raise_failure
          add(Call.new(work, nil, false))
        end
      end

      # Makes the loop send the head of the response after HEAD_DELAY, unless the thread sends or withdraws it before.
      # @return [void]
      def flush_head_later = enqueue { @head_due = now + HEAD_DELAY }

      # Withdraws the head, because another one will be sent. Also cancels {#flush_head_later}.
      # @see HTTP::Response#withdraw
      def withdraw_head
        ask do
          @head_due = nil
          @exchange.response.withdraw
        end
      end

      # Called when the thread no longer needs the exchange. A second call does nothing.
      # @yield in the loop's fiber, after all queued calls
      # @return [void]
      def release(&last)
        @file&.close if @ended
        return if @calls.closed?

        @last = last
        @calls.close
      end

      # -- as an exchange --

      # @see HTTP::Exchange
      def method = value_for_log { @exchange.method }

      def target = value_for_log { @exchange.target }

      def_delegators :@exchange, :interim?, :hijack?, :hijacked?, :head?, :closed?, :remote_address, :request_id,
                     :request_id=, :engine

      # Returns false, because only the loop can upgrade the connection ({ThreadHandler}).
      def upgradable? = false

      # @return [ResponseProxy]
      def response = @response ||= ResponseProxy.new(self, @exchange.response)

      def started? = ask { @exchange.started? }

      def received? = ask { @exchange.received? }

      # @return [ExchangeProxy] reads the request's body if it is streamed
      def body = self

      # @see HTTP::RequestBody#read
      def read = ask(aside: true) { @exchange.body.read }

      # @see HTTP::H1::Exchange#readpartial
      def readpartial(size) = ask(aside: true) { @exchange.readpartial(size) }

      def drain = ask { @exchange.drain }

      def reject(status, reason) = ask { @exchange.reject(status, reason) }

      def detach = ask { @exchange.detach }

      # Takes the connection over. The env has this object as `rack.hijack`, which must respond to `call`.
      def call = ask { @exchange.call }

      def close
        ask { @exchange.close }
      rescue EndedError
        nil
      end

      private

      # Drops a cancellation that has come since the service returned, so that it is not raised in the thread's next
      # request.
      def drop_late_cancellation
        Thread.handle_interrupt(Cancelled => :immediate) { Thread.pass } if Thread.pending_interrupt?(Cancelled)
      rescue Cancelled
        nil
      end

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

      # The log may need these values after the exchange has ended.
      def value_for_log
        yield
      rescue IOError
        "?"
      end

      def next_call
        return @calls.pop unless @head_due

        call = @calls.pop(timeout: (@head_due - now).clamp(0..))
        return call if call || @calls.closed?

        @head_due = nil
        Call.new(-> { @exchange.response.flush }, nil, false)
      end

      def perform(call)
        # After a failed call, queued calls are dropped, up to the next call whose result the thread waits for. The
        # thread gets the failure as the result of that call.
        return if @failure && !call.answers
        return answer(-> { raise_failure }, call.answers) if @failure
        return Fiber.schedule { answer(call.work, call.answers) } if call.aside

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
