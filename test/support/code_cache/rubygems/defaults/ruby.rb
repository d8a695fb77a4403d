# frozen_string_literal: true

# RubyGems looks for this file before it reads the specifications of all gems that Ruby comes with, a third of the start
# that is left. Kept are the names of these gems' files, and where the specification of each is; it is read when one of
# the files is required.
require_relative "../../../code_cache"

module CodeCache
  # The specifications by the names of files, as RubyGems asks for them.
  class DefaultGems < Hash
    def [](path)
      found = super
      return found unless found.is_a?(String)

      # In a loop's fiber reading would be a switch that Ruby does not make here.
      self[path] = Fiber.blocking { Gem::Specification.load(found) }
    end
  end

  Gem::Specification.singleton_class.prepend(Module.new do
    def load_defaults
      kept = CodeCache.place(Gem.default_specifications_dir) or return super
      unless File.exist?(kept)
        super
        paths = Gem.instance_variable_get(:@path_to_default_spec_map).transform_values(&:loaded_from)
        return CodeCache.keep(Marshal.dump(paths), kept)
      end

      paths = DefaultGems.new.replace(Marshal.load(File.binread(kept))) # rubocop:disable Security/MarshalLoad
      Gem.instance_variable_set(:@path_to_default_spec_map, paths)
    rescue SystemCallError
      super
    end
  end)
end
