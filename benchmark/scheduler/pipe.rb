# frozen_string_literal: true

module Bench
  module Rows
    # One fiber writes to a pipe in pieces of 1 MiB, sixteen times what a pipe holds, and another one reads.
    class Pipe < Row
      PIECE = 1 << 20

      def key = "pipe"

      def title = "1 GiB through a pipe in pieces of 1 MiB"

      def unit = "GB/s"

      def better = :higher

      def details = %i[cpu_s]

      def sizes(quick:) = { pieces: quick ? 64 : 1_024 }

      def excludes(contestant) = contestant.key == "blocking" ? "would wait for itself" : super

      def measure(contestant, size)
        send_through(contestant, 4)
        received = 0
        seconds, cpu = timed { received = send_through(contestant, size[:pieces]) }
        check(received, size[:pieces] * PIECE, "bytes arrived")
        { value: received / seconds / 1e9, cpu_s: cpu }
      end

      private

      def send_through(contestant, pieces)
        received = 0
        contestant.run do
          reader, writer = IO.pipe
          contestant.spawn { received = read_all(reader) }
          contestant.spawn { write_all(writer, pieces) }
        end
        received
      end

      def write_all(writer, pieces)
        piece = "x" * PIECE
        pieces.times { writer.write(piece) }
        writer.close
      end

      def read_all(reader)
        buffer = +""
        received = 0
        received += buffer.bytesize while reader.read(PIECE, buffer)
        reader.close
        received
      end
    end
  end
end
