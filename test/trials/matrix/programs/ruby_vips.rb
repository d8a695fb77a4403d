# frozen_string_literal: true

require "vips"

got = clients do |number|
  image = Vips::Image.black(400, 400, bands: 3).linear(1, number)
  small = Vips::Image.new_from_buffer(image.cast(:uchar).write_to_buffer(".png"), "").resize(0.5)
  [small.width, small.avg.round]
end
proves("8 tasks write, read and resize images, each its own", got == Array.new(CLIENTS) { |number| [200, number] })
