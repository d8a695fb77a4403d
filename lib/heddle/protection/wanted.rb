# frozen_string_literal: true

module Heddle
  module Protection
    # Switches protections on while a server serves. Meanwhile, any thread may change which protections are on.
    class Wanted
      # @param names [Array<Symbol>]
      def initialize(names)
        @names = names
        @taken = nil
        @lock = Thread::Mutex.new
      end

      # Switches the protections on while the block runs.
      # @return what the block returns
      def during
        @lock.synchronize do
          @taken = []
          take(@names)
        end
        yield
      ensure
        @lock.synchronize do
          @taken.each { |name| Protection.release(name) }
          @taken = nil
        end
      end

      # Changes the protections. Calls that already run are not affected. If `names` is empty, all protections are
      # switched off, even those that the program itself has switched on.
      # @param names [Array<Symbol>] the protections that are needed from now on
      # @return [void]
      def change(names)
        @lock.synchronize do
          @names = names
          next unless @taken

          take(names - @taken)
          (@taken - names).each { |name| Protection.release(@taken.delete(name)) }
          Heddle.disable if names.empty?
        end
      end

      private

      def take(names)
        names.each do |name|
          Protection.acquire(name)
          @taken << name
        end
      end
    end
  end
end
