"""The window's own parts: docks, bars, menus, pages."""
