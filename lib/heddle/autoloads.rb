# frozen_string_literal: true

module Heddle
  # Loads a constant when it is first used, from the file of its name, as Zeitwerk does: TCPBind is in tcp_bind.rb.
  #
  # @api private
  module Autoloads
    ACRONYMS = %w[CLI DNS EDNS H1 H2 HTTP JIT TCP TLS TTL UDP URL].to_h { |name| [name.downcase, name] }.freeze
    private_constant :ACRONYMS

    class << self
      # @param namespace [Module]
      # @param folder [String] such as "heddle/server"; each of these files defines one constant of the namespace
      # @param files [Array<String>, nil] nil: all of the folder
      # @return [void]
      def add(namespace, folder, files = nil)
        files ||= all(folder)
        files.each { |file| namespace.autoload(constant(file), "#{folder}/#{file}") }
      end

      # Loads all files of a folder at once.
      # @param folder [String]
      # @return [void]
      def load(folder) = all(folder).each { |file| require "#{folder}/#{file}" }

      # Loads the constants that have not been used yet.
      # @param namespaces [Array<Module>]
      # @param except [Array<Symbol>] constants
      # @return [void]
      def load_constants(*namespaces, except: [])
        namespaces.each do |namespace|
          (namespace.constants - except).each { |name| namespace.const_get(name) if namespace.autoload?(name) }
        end
      end

      private

      def all(folder)
        Dir.glob("*.rb", base: File.expand_path("../#{folder}", __dir__)).map { |file| file.delete_suffix(".rb") }
      end

      def constant(file) = file.split("_").map { |word| ACRONYMS.fetch(word) { word.capitalize } }.join
    end
  end
end
