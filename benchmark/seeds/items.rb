# frozen_string_literal: true

module Bench
  module Seeds
    # Fifty items of a shop, which a request puts prices on.
    module Items
      WORDS = %w[alpha beta gamma delta warp weft shuttle bobbin].freeze
      ALL = Array.new(50) do |index|
        { id: index + 1, name: "#{WORDS[index % 8].capitalize} #{WORDS[(index * 3) % 8]}",
          category: %w[tools yarn looms books][index % 4], price: 100 + ((index * 37) % 400),
          quantity: 1 + ((index * 7) % 20), active: index.odd?, tags: [WORDS[(index * 5) % 8], "new"],
          rating: { score: 30 + ((index * 11) % 20), count: 10 + ((index * 13) % 190) } }.freeze
      end.freeze

      # @param count [Integer] how many of them
      # @param multiplier [Integer]
      # @return [Hash]
      def self.priced(count, multiplier)
        items = ALL.first(count).map { |item| item.merge(total: item[:price] * item[:quantity] * multiplier) }
        { items:, count: items.size }
      end
    end
  end
end
