# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Lets all fibers that need the result for the same key at the same time share one lookup.
      #
      # The first fiber takes a baton and does the work. If it is cancelled or times out, the next fiber gets the baton
      # and starts the lookup again. So no fiber fails because another one was cancelled.
      #
      # @api private
      class SingleFlight
        def initialize
          @flights = {}
        end

        # @param key [Object] identifies the lookup
        # @yieldreturn [Object] the result, which all fibers get
        # @raise [SocketError] the error that the block raised, in all fibers
        def share(key, &work)
          flight = (@flights[key] ||= Flight.new)
          flight.join(&work)
        ensure
          @flights.delete(key) if flight&.over? && @flights[key].equal?(flight)
        end

        # @return [Integer] number of running lookups
        def size = @flights.size

        # @return [Integer] number of fibers that wait for another fiber's lookup
        def waiting(key) = @flights[key]&.waiting || 0

        # One lookup and the fibers that wait for it.
        class Flight
          def initialize
            @askers = 0
            # Contains the baton (`true`) while no fiber has it. Closed when there is a result or an error.
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

          # Is the lookup over, so that no other fiber may join it?
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

          # @return [true, nil] nil: there is a result or an error
          def take_baton
            taken = false
            baton = @baton.pop
            taken = true
            baton
          ensure
            # The fiber may have been woken for the baton and then interrupted before it took the baton. The queue does
            # not wake another fiber in this case.
            @baton.push(true) if !taken && @baton.pop(timeout: 0)
          end
        end
        private_constant :Flight
      end
    end
  end
end
