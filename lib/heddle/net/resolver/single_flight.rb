# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Lets all fibers that ask for the same key at the same time share one lookup.
      #
      # The first fiber does the work and holds a baton meanwhile. If it is cancelled or times out, it passes the baton
      # to the next one, which begins again: no fiber fails because another one was cancelled.
      #
      # @api private
      class SingleFlight
        def initialize
          @flights = {}
        end

        # @param key [Object] what is asked for
        # @yieldreturn [Object] the result, for all
        # @raise [SocketError] what the block raised, for all
        def share(key, &work)
          flight = (@flights[key] ||= Flight.new)
          flight.join(&work)
        ensure
          @flights.delete(key) if flight&.over? && @flights[key].equal?(flight)
        end

        # @return [Integer] lookups under way
        def size = @flights.size

        # @return [Integer] how many wait for another fiber's lookup
        def waiting(key) = @flights[key]&.waiting || 0

        # One lookup and the fibers that wait for it.
        class Flight
          def initialize
            @askers = 0
            # Holds the baton while no fiber carries it; closed when there is a result.
            @baton = Thread::Queue.new.push(true)
          end

          def join(&work)
            @askers += 1
            carry(&work) while take_baton
            raise @error.exception(@error.message) if @error

            @result
          ensure
            @askers -= 1
          end

          def waiting = @baton.num_waiting

          # The lookup is over: no later fiber may join it.
          def over? = @baton.closed? || @askers.zero?

          private

          def carry
            @result = yield
            @baton.close
          rescue SocketError => e
            @error = e
            @baton.close
          ensure
            @baton.push(true) unless @baton.closed?
          end

          # @return [true, nil] nil when there is a result
          def take_baton
            taken = false
            baton = @baton.pop
            taken = true
            baton
          ensure
            # The fiber may have been woken for the baton, and interrupted before it took it. Then the queue itself
            # wakes no other fiber.
            @baton.push(true) if !taken && @baton.pop(timeout: 0)
          end
        end
        private_constant :Flight
      end
    end
  end
end
