"""The web layer of the page admits only sessions of the owner's browsers, asks the daemon, and renders templates."""
