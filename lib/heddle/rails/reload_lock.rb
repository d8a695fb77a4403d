# frozen_string_literal: true

module Heddle
  module Rails
    # A shared lock that keeps code from being reloaded while requests run. Requests lock it shared; a reload locks it
    # exclusively. In Rails before 8.2 it replaces ActiveSupport::Concurrency::ShareLock. The owners of a ShareLock are
    # threads; the owners of this lock are fibers if Rails isolates by fiber.
    #
    # A request already has a share when it finds that it must reload. While it waits for the other requests to finish,
    # its share is released; otherwise two such requests would wait for each other. After the reload, it gets its share
    # back only when the other requests that also wait to reload have finished their reloads.
    #
    # A share is granted unless a reload runs, even if a reload waits: a thread of ActionController::Live must get a
    # share while its request has one.
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
      # @return [Boolean] whether the caller now has the lock exclusively
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
      # @raise [RuntimeError] if the caller does not have the lock exclusively
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

      # @return what the block returns; nil with `no_wait` if others have the lock or a share
      def exclusive(no_wait: false, **)
        return unless start_exclusive(no_wait:)

        begin
          yield
        ensure
          stop_exclusive
        end
      end

      # Keeps the shares. Rails 7.2 releases them here so that other threads can load code, but Zeitwerk does not need
      # this lock.
      def yield_shares(**) = yield

      # Shows no owners in /rails/locks, which supports only threads.
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
