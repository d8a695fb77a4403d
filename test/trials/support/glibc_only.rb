# frozen_string_literal: true

# Loaded before `gem install`: RubyGems of Debian takes a binary for musl to be for any Linux, and glibc can't load it.
module GlibcOnly
  def ===(other) = super && !other.to_s.end_with?("-musl")

  Gem::Platform.prepend(self)
end
