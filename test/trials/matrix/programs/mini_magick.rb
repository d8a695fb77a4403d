# frozen_string_literal: true

require "mini_magick"
require "tmpdir"

abort "not so: ImageMagick is there (apt-get install imagemagick)" unless File.exist?("/usr/bin/convert")
ENV["PATH"] = "/usr/bin:#{ENV.fetch("PATH")}"
Dir.mktmpdir do |folder|
  sizes = clients do |number|
    path = File.join(folder, "#{number}.png")
    MiniMagick.convert { |convert| convert.size("64x64").xc("red") << path }
    image = MiniMagick::Image.open(path)
    image.resize("#{number + 1}x#{number + 1}!")
    image.dimensions
  end
  proves("8 tasks write, read and resize images, each its own", sizes == (1..CLIENTS).map { |size| [size, size] })
end
