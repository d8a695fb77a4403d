# frozen_string_literal: true

# A cart that somebody keeps in the cache, with all that was ever in it.
class Cart
  def self.fill
    items = Array.new(250_000) { |number| { id: number, name: "item #{number}", price: number * 0.5 } }
    Rails.cache.write("cart", items)
  end

  def self.total
    Rails.cache.read("cart").sum { |item| item[:id] } # culprit: cache
  end
end
