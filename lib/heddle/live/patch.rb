# frozen_string_literal: true

module Heddle
  class Live
    # Instructions with which a client makes the new list of pieces from the old one. The client reads the old list with
    # a cursor, and obeys one instruction after another:
    #
    #     3                 copies three pieces
    #     {"0": "on"}       copies one piece, and replaces the values at these places
    #     [2, "7", "off"]   adds a piece
    #     "12"              moves the cursor to the old piece 12
    #
    # @api private
    module Patch
      class << self
        # @param old [Array<Array>] pieces, see {Template}
        # @param new [Array<Array>]
        # @return [Array, nil] instructions; nil: the lists are equal
        def between(old, new)
          return if old == new

          script = []
          cursor = 0
          places = nil
          new.each do |piece|
            before = old[cursor]
            if piece == before
              copy_one(script)
            elsif (place = (places ||= places_of(old, new))[piece])
              script << place.to_s << 1
              cursor = place
            elsif before && before[0] == piece[0] && !places[before]
              script << changes(before, piece)
            else
              script << piece
              next
            end
            cursor += 1
          end
          script
        end

        private

        def copy_one(script)
          script.last.is_a?(Integer) ? script[-1] += 1 : script << 1
        end

        # The places of the old pieces that the new list has, too.
        def places_of(old, new)
          wanted = new.to_h { |piece| [piece, true] }
          old.each_with_index.with_object({}) { |(piece, i), places| places[piece] ||= i if wanted[piece] }
        end

        def changes(before, piece)
          piece.each_with_index.with_object({}) do |(value, i), changes|
            changes[i - 1] = value unless i.zero? || value == before[i]
          end
        end
      end
    end
  end
end
