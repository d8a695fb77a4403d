# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Calls libc's getaddrinfo(3) in a thread, for names in sources that only libc can read. Only the calling fiber
      # waits for the thread. libc reports no TTL, so the result is not cached.
      #
      # @api private
      class SystemResolver
        # Maximum number of lookups in libc at the same time; others wait. A thread whose fiber was cancelled still
        # counts, because libc can't be interrupted.
        THREADS = 64

        NOT_FOUND = %i[EAI_NONAME EAI_NODATA EAI_ADDRFAMILY]
                    .filter_map { |name| Socket.const_get(name) if Socket.const_defined?(name) }.freeze

        # @param lookup [#call] takes a name and returns Addrinfos
        def initialize(lookup = nil)
          @lookup = lookup || ->(name) { Addrinfo.getaddrinfo(name, nil, nil, :STREAM) }
          @running = Thread::SizedQueue.new(THREADS)
        end

        # @param name [String]
        # @return [Array<String>] empty if the name does not exist, or has no address
        # @raise [SocketError] for any other failure, with libc's message
        def addresses(name)
          found = ask(name)
          raise found if found.is_a?(Exception)

          found.map { |address| address.ip_address.freeze }.uniq.freeze
        rescue Socket::ResolutionError => e
          raise unless NOT_FOUND.include?(e.error_code)

          [].freeze
        end

        private

        def ask(name)
          answer = Thread::Queue.new
          @running.push(true)
          begin
            start(name, answer)
          rescue ThreadError => e
            @running.pop
            raise SocketError, "getaddrinfo: can't start a thread for libc's resolver (#{e.message}); raise the " \
                               "limit on threads"
          end
          answer.pop || raise(SocketError, "getaddrinfo: the thread that looked up #{name} was killed")
        end

        # The queue `answer` gets the result. Thread#value is not used, because in Ruby 3.3 Thread#join, which it
        # calls, may return at any wake-up (Bug #13532).
        def start(name, answer)
          Thread.new do
            answer.push(@lookup.call(name))
          rescue StandardError => e
            answer.push(e)
          ensure
            answer.close
            @running.pop
          end
        end
      end
    end
  end
end
