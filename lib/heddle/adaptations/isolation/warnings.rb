# frozen_string_literal: true

module Heddle
  module Adaptations
    module Isolation
      # Warns, in development, when a request reads from a thread variable what another request has written, with both
      # places. Put before the methods of Thread; each pair of call sites is reported once.
      module Warnings
        # Where a request's mark is kept, in the storage of its fiber.
        MARK = :heddle_request
        # Where a thread keeps what is known about its variables.
        NOTES = :heddle_isolation_warnings
        # Variables of Concurrent::ThreadLocalVar, which several requests use on purpose.
        SHARED = %i[concurrent_thread_locals].freeze
        # The last writer of a variable, and its call site.
        Writer = Struct.new(:mark, :place)
        private_constant :MARK, :NOTES, :SHARED, :Writer

        # @see Thread#thread_variable_get
        def thread_variable_get(key)
          value = super
          Warnings.note_read(self, key) unless value.nil? || key == NOTES
          value
        end

        # @see Thread#thread_variable_set
        def thread_variable_set(key, value)
          Warnings.note_write(self, key) unless key == NOTES
          super
        end

        class << self
          # @return [void]
          def note_write(thread, key)
            return unless watched?(thread, key)

            notes(thread)[key.to_sym] = Writer.new(mark, place)
          end

          # @return [void]
          def note_read(thread, key)
            return unless watched?(thread, key)

            writer = notes(thread)[key.to_sym]
            return if writer.nil? || writer.mark.equal?(mark)

            warn_once(thread, key, writer.place, place)
          end

          private

          def watched?(thread, key)
            thread.equal?(Thread.current) && Fiber.current_scheduler && !Isolation.names[key] &&
              !SHARED.include?(key.to_sym)
          end

          # Gone with the request's storage, so that the next one has another.
          def mark = Fiber[MARK] ||= Object.new

          def notes(thread) = thread.thread_variable_get(NOTES) || thread.thread_variable_set(NOTES, {})

          def place
            caller_locations(2, 20).find { |location| !location.path.start_with?(__dir__) }.to_s
          end

          def warn_once(thread, key, written, read)
            pair = [key, written, read]
            return if notes(thread)[pair]

            notes(thread)[pair] = true
            Events.report(:thread_variable_shared, variable: key, written:, read:)
          end
        end
      end
    end
  end
end
