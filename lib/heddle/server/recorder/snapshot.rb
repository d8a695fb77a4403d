# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # A copy of the C extension's records (ext/heddle/scheduler/recorder.c) at one moment. It is parsed later, on
      # another thread, because parsing would block a loop for too long.
      class Snapshot
        # A period in which a fiber did one thing, such as running or waiting for a lock (`part`). `request`: the
        # request's number, or 0 if the stretch belongs to no request. `task`: whether the fiber is that of a task which
        # the request has started. `place`: the line at the end of a `running` stretch, or at the beginning of a wait.
        # `timed_out`: whether a time limit ended the wait.
        Stretch = Data.define(:began, :ended, :request, :part, :task, :place, :timed_out) do
          def seconds = ended - began
        end
        # The stack of code that ran for a period. `request`: the request's number, or 0 if the code belongs to no
        # request. `task`: as in {Stretch}; without a request, true if the code ran in the loop, and false if it ran in
        # another thread. `activity`: one of {Stall::CAUSES}. `frames`: the innermost frame first.
        Sample = Data.define(:began, :ended, :request, :activity, :task, :place, :frames)

        # STRETCH and SAMPLE: formats of the extension's structs for String#unpack. …_SIZE: sizes in bytes. NAMES: the
        # number of slots in the extension's table of the requests' names.
        STRETCH = "q2QSC3"
        STRETCH_SIZE = 32
        SAMPLE = "q2QC2S*"
        SAMPLE_SIZE = 72
        NAME_SIZE = 128
        NAMES = 4096
        PLACE_SIZE = 128
        ACTIVITIES = Stall::CAUSES.keys.freeze
        private_constant :STRETCH, :STRETCH_SIZE, :SAMPLE, :SAMPLE_SIZE, :NAME_SIZE, :NAMES, :PLACE_SIZE, :ACTIVITIES

        # @return [Integer] how many stretches and stacks were lost because the buffer was full
        attr_reader :lost

        # @param since [Float] stretches and stacks that ended before this time are left out
        # @return [Snapshot, nil] nil: the recorder is off
        def self.take(since = 0.0) = Account.recorded&.then { |found| new(*found, since) }

        def initialize(stretches, samples, names, places, lost, since)
          @since = (since * 1e9).to_i
          @packed_stretches = stretches
          @packed_samples = samples
          @names = names
          @places = places
          @lost = lost
        end

        # @return [Array<Stretch>] sorted by their ends
        def stretches
          @stretches ||= begin
            all = unpack_all(@packed_stretches, STRETCH_SIZE, STRETCH) do |began, ended, request, at, *rest|
              part, task, late = rest
              Stretch.new(began / 1e9, ended / 1e9, request, Account::PARTS[part], task == 1, place(at), late == 1)
            end
            with_places(all)
          end
        end

        # @return [Array<Sample>] sorted by their ends
        def samples
          @samples ||= unpack_all(@packed_samples, SAMPLE_SIZE, SAMPLE) do |began, ended, request, *rest|
            activity, task, at, *frames = rest
            Sample.new(began / 1e9, ended / 1e9, request, ACTIVITIES[activity], task == 1, place(at),
                       frames.take_while(&:positive?).map { |number| place(number) })
          end
        end

        # @param request [Integer] the request's number
        # @return [String] its method and path; "a request" if they are not recorded any more
        def name(request)
          slot = (request ^ (request >> 20)) % NAMES
          number, text = @names.unpack("QZ*", offset: slot * NAME_SIZE)
          number == request && !text.empty? ? text.force_encoding(Encoding::UTF_8).scrub : "a request"
        end

        private

        def unpack_all(packed, size, format)
          (0...packed.bytesize).step(size).filter_map do |offset|
            Recorder.give_way
            yield packed.byteslice(offset, size).unpack(format) if packed.unpack1("q", offset: offset + 8) >= @since
          end
        end

        # A wait without a place begins at the line where the running stretch before it has ended.
        def with_places(all)
          last = {}
          all.map do |one|
            key = [one.request, one.task]
            before = last[key]
            last[key] = one
            next one if one.place || before.nil? || before.part != :running || before.ended != one.began

            one.with(place: before.place)
          end
        end

        def place(number)
          return if number.zero?

          (@texts ||= {})[number] ||=
            @places.unpack1("Z*", offset: number * PLACE_SIZE).force_encoding(Encoding::UTF_8).scrub
        end
      end
    end
  end
end
