# frozen_string_literal: true

module Heddle
  module Rails
    # Keeps code from being reloaded while requests run: requests share the lock, a reload holds it alone. Replaces
    # ActiveSupport::Concurrency::ShareLock in Rails before 8.2, whose owners are threads. Here the owners are fibers,
    # as Rails isolates by fibers.
    #
    # A request already holds its share when it finds that it has to reload. While it waits for the others to finish,
    # its share doesn't count, or two such requests would wait for each other. When it has reloaded, it takes its share
    # back only after the other requests that wait to reload had their turn. A share is granted unless a reload runs. A
    # reload that waits doesn't count: a thread of ActionController::Live has to get its share while its request holds
    # one.
    class ReloadLock
      def initialize
        @mutex = Thread::Mutex.new
        @changed = Thread::ConditionVariable.new
        @shares = Hash.new(0).compare_by_identity
        @owner = nil
        @depth = @wanting = 0
      end

      # @return [void]
      def start_sharing
        me = owner
        @mutex.synchronize do
          wait { @owner } unless @shares.key?(me) || @owner.equal?(me)
          @shares[me] += 1
        end
      end

      # @return [void]
      def stop_sharing
        me = owner
        @mutex.synchronize do
          next @shares[me] -= 1 if @shares[me] > 1

          @shares.delete(me)
          @changed.broadcast
        end
      end

      # @return what the block returns
      def sharing
        start_sharing
        begin
          yield
        ensure
          stop_sharing
        end
      end

      # @param no_wait [Boolean] whether to return false instead of waiting
      # @return [Boolean] whether the caller holds the lock alone now
      def start_exclusive(no_wait: false, **)
        me = owner
        @mutex.synchronize do
          unless @owner.equal?(me)
            return false if no_wait && (@owner || @shares.any? { |other,| !other.equal?(me) })

            without_share(me) { wait_alone(me) }
          end
          @depth += 1
        end
        true
      end

      # @return [void]
      # @raise [RuntimeError] when the caller does not hold the lock alone
      def stop_exclusive(**)
        me = owner
        @mutex.synchronize do
          raise "invalid unlock" unless @owner.equal?(me)
          next unless (@depth -= 1).zero?

          @owner = nil
          @changed.broadcast
          without_share(me) { wait { @owner || @wanting > 0 } } if @wanting > 0
        end
      end

      # @return what the block returns; nil with `no_wait` when others hold the lock or shares of it
      def exclusive(no_wait: false, **)
        return unless start_exclusive(no_wait:)

        begin
          yield
        ensure
          stop_exclusive
        end
      end

      # Keeps the shares. Rails 7.2 gives them up here so that other threads can load code; Zeitwerk loads it without
      # this lock.
      def yield_shares(**) = yield

      # For /rails/locks, which knows only threads.
      def raw_state = yield({})

      private

      def owner = ActiveSupport::IsolatedExecutionState.context

      def wait = (@changed.wait(@mutex) while yield)

      def wait_alone(me)
        @wanting += 1
        wait { @owner || !@shares.empty? }
        @owner = me
      ensure
        @wanting -= 1
        @changed.broadcast
      end

      def without_share(me)
        share = @shares.delete(me)
        @changed.broadcast
        yield
      ensure
        @shares[me] = share if share
      end
    end
  end
end
