# frozen_string_literal: true

module Heddle
  class Live
    # Makes the instructions by which a client turns the old list of a template's pieces into the new list. The client
    # has a cursor in the old list, and executes one instruction after another:
    #
    #     3                 copy three pieces from the cursor
    #     {"0": "on"}       copy one piece, and replace the values with these indexes
    #     [2, "7", "off"]   add this piece
    #     "12"              move the cursor to the old piece with index 12
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

        # @return [Hash{Array => Integer}] pieces that are in both lists => their first indexes in the old list
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
